//! A function's name → the stage of a call that it belongs to.

use super::super::callgrind::PerCall;

/// The stage of a function: that of the first row which has the beginning of its name.
pub fn of(function: &str) -> &'static str {
    let name = bare(function);
    let has = |row: &&(&str, &[&str])| row.1.iter().any(|start| name.starts_with(start));
    STAGES.iter().find(has).map_or(OTHER, |(stage, _)| stage)
}

/// What of a call's instructions is not the allocator's. Its own depend on how the heap happens to lie, and move a figure by
/// 3 % from run to run; all others together move by 0.01 %.
pub fn outside_allocator(per_call: &PerCall) -> f64 {
    let others = per_call.functions.iter().filter(|(name, _)| of(name) != ALLOCATOR);
    others.map(|(_, cost)| cost).sum()
}

/// Every stage, in the order of the page.
pub fn names() -> impl Iterator<Item = &'static str> {
    // A stage may have two rows, the narrower before another stage's wider one.
    let is_first = |(index, row): &(usize, &(&str, _))| {
        STAGES[..*index].iter().all(|(stage, _)| *stage != row.0)
    };
    STAGES.iter().enumerate().filter(is_first).map(|(_, row)| row.0).chain([OTHER])
}

/// A name without what stands before the path of the type that it is of or drops.
fn bare(function: &str) -> &str {
    let mut name = function;
    let around = ["<", "&", "mut ", "[", "core::ptr::drop_in_place", "core::option::Option"];
    while let Some(rest) = around.iter().find_map(|around| name.strip_prefix(around)) {
        name = rest;
    }
    name
}

const OTHER: &str = "other";
const ALLOCATOR: &str = "allocator";

/// One row a stage, or two; the first that fits wins.
const STAGES: &[(&str, &[&str])] = &[
    (
        "HTTP in",
        &[
            "httparse",
            "trunkline_proto::http::door",
            "trunkline_proto::http::classify",
            "trunkline_transport::http::endpoint",
            "trunkline_transport::http::post",
            "trunkline_transport::http::serve",
            "trunkline_gateway::front",
            "trunkline_wire::header",
        ],
    ),
    (
        "decide",
        &[
            "trunkline_proto::server",
            "trunkline_proto::pending",
            "trunkline_proto::budget",
            "trunkline_proto::input_required",
            "trunkline_proto::subscribe",
            "trunkline_proto::task",
            "trunkline_transport::http::exchange",
            "trunkline_transport::http::session",
            "trunkline_wire::method",
            "trunkline_wire::model",
        ],
    ),
    (
        "policy",
        &[
            "trunkline_gateway::gate",
            "trunkline_gateway::policy",
            "trunkline_gateway::merge",
            "trunkline_gateway::scoped_handler",
            "trunkline_gateway::state",
            "trunkline_gateway::caller",
            "trunkline_gateway::selector",
        ],
    ),
    ("pool", &["trunkline_gateway::pool", "trunkline_gateway::server"]),
    (
        "upstream",
        &[
            "trunkline_proto::client",
            "trunkline_transport::http::client",
            "trunkline_gateway::client_profile",
            "trunkline_gateway::forward",
            "trunkline_gateway::parked_calls",
            "trunkline_gateway::question",
            "trunkline_gateway::upstream",
            "trunkline_gateway::watcher",
        ],
    ),
    ("carry", &["trunkline_wire::era", "trunkline_wire::json::glance"]),
    (
        "record",
        &[
            "trunkline_gateway::call",
            "trunkline_gateway::metrics",
            "trunkline_gateway::otel",
            "trunkline_gateway::outcome",
            "trunkline_gateway::trace",
            "trunkline_gateway::traffic",
            "trunkline_gateway::logs",
            "trunkline_wire::trace",
            "tracing",
        ],
    ),
    (
        "HTTP out",
        &[
            "trunkline_proto::http",
            "trunkline_transport::http",
            "hyper::common::buf",
            "hyper::proto::h1::conn::Conn<I,B,T>::write",
            "hyper::proto::h1::dispatch::Dispatcher<D,Bs,I,T>::poll_write",
            "hyper::proto::h1::encode",
            "hyper::proto::h1::io::Buffered<T,B>::poll_flush",
            "hyper::proto::h1::io::WriteBuf",
            "hyper::proto::h1::role::Server as hyper::proto::h1::Http1Transaction>::encode",
            "http::response",
        ],
    ),
    ("HTTP in", &["hyper", "http::", "bytes::bytes_mut"]),
    ("handler", &["trunkline::", "trunkline_echo::", "trunkline_http::", "trunkline_client::"]),
    (
        "JSON and frames",
        &["serde", "trunkline_wire", "core::str::converts::from_utf8", "itoa", "ryu", "zmij"],
    ),
    ("driver", &["trunkline_transport", "trunkline_proto"]),
    (
        "runtime",
        &["tokio", "mio", "std::sys", "std::time", "clock_gettime", "__vdso", "core::future"],
    ),
    (
        ALLOCATOR,
        &[
            "alloc_perturb",
            "malloc",
            "free",
            "calloc",
            "realloc",
            "cfree",
            "_int_",
            "unlink_chunk",
            "sysmalloc",
            "systrim",
            "__rustc::",
            "__rust",
            "__rdl",
            "alloc::raw_vec",
        ],
    ),
    ("copies", &["__mem", "mem"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_that_fits_wins() {
        for (function, stage) in [
            ("malloc", "allocator"),
            ("__memcpy_avx_unaligned_erms", "copies"),
            (
                "<&mut serde_json::de::Deserializer<R> as serde_core::de::Deserializer>::deserialize_map",
                "JSON and frames",
            ),
            (
                "<hyper::proto::h1::role::Server as hyper::proto::h1::Http1Transaction>::encode",
                "HTTP out",
            ),
            (
                "<hyper::proto::h1::role::Server as hyper::proto::h1::Http1Transaction>::parse",
                "HTTP in",
            ),
            (
                "core::ptr::drop_in_place<[http::header::map::Bucket<http::header::value::HeaderValue>]>",
                "HTTP in",
            ),
            (
                "trunkline_gateway::gate::at::<impl trunkline_gateway::gate::Walk>::at::{{closure}}",
                "policy",
            ),
            ("trunkline_transport::http::client::send", "upstream"),
            ("trunkline_transport::http::reply::send", "HTTP out"),
            ("trunkline_transport::drive::Driver<C,H,R,W>::poll", "driver"),
            ("<&str as core::str::pattern::Pattern>::is_contained_in", OTHER),
        ] {
            assert_eq!(of(function), stage, "{function}");
        }
    }

    #[test]
    fn every_module_that_a_row_names_is_there() {
        for start in STAGES.iter().flat_map(|(_, starts)| *starts) {
            let Some((library, path)) = start.split_once("::") else { continue };
            if !library.starts_with("trunkline_") || path.is_empty() {
                continue;
            }
            let source =
                crate::run::root().join("crates").join(library.replace('_', "-")).join("src");
            if !source.exists() {
                continue;
            }
            let (folder, name) = path.rsplit_once("::").unwrap_or(("", path));
            let files = std::fs::read_dir(source.join(folder.replace("::", "/"))).unwrap();
            let is_there =
                files.flatten().any(|it| it.file_name().to_string_lossy().starts_with(name));
            assert!(is_there, "`{start}` is no module any more");
        }
    }

    #[test]
    fn every_stage_is_listed_once() {
        let all: Vec<&str> = names().collect();
        assert_eq!(all.iter().filter(|stage| **stage == "HTTP in").count(), 1);
        assert_eq!(all.last(), Some(&OTHER));
    }
}
