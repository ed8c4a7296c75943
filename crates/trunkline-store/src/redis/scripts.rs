//! What a store does to one key, as scripts that Redis runs atomically.
//!
//! Every key belongs to one of [`BUCKETS`] buckets, and all that a script touches lies in one bucket. The bucket's
//! number is the hash tag, so a cluster keeps a bucket on one node.
//!
//! | name | what lies there |
//! |---|---|
//! | `PREFIX{BUCKET}e:KEY` | an entry: a hash of `v`, the value, and `n`, its number; expires by itself |
//! | `PREFIX{BUCKET}l:NAME` | a lease: its fence; expires by itself |
//! | `PREFIX{BUCKET}n` | the greatest number given in the bucket |
//! | `PREFIX{BUCKET}i` | the keys of the bucket's entries, sorted by their bytes |
//! | `PREFIX{BUCKET}x` | those of them that expire, by when |

use redis::Script;

/// How many buckets there are. A scan asks each; a cluster spreads them over its nodes.
pub(super) const BUCKETS: u64 = 16;

/// A field and its script for each name; the first ones begin with the prelude.
macro_rules! scripts {
    ($($long:ident = $body:ident),*; $($short:ident = $whole:ident),*;) => {
        /// The scripts, each hashed once.
        pub(super) struct Scripts {
            $(pub(super) $long: Script,)*
            $(pub(super) $short: Script,)*
        }

        impl Scripts {
            pub(super) fn new() -> Self {
                Self {
                    $($long: Script::new(&format!("{PRELUDE}{}", $body)),)*
                    $($short: Script::new($whole),)*
                }
            }
        }
    };
}

scripts! {
    put = PUT, swap = SWAP, delete = DELETE, count = COUNT, take = TAKE, lease = LEASE;
    renew = RENEW, release = RELEASE;
}

/// The bucket of a key (FNV-1a). It must never change: entries would be lost.
pub(super) fn bucket(key: &str) -> u64 {
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 32)) % BUCKETS
}

/// A number of a bucket ⇄ one that no other bucket gives.
pub(super) fn global(number: u64, bucket: u64) -> u64 {
    number.saturating_mul(BUCKETS).saturating_add(bucket)
}

/// The number inside a bucket, if `global` is one of this bucket's.
pub(super) fn local(global: u64, bucket: u64) -> Option<u64> {
    (global % BUCKETS == bucket).then_some(global / BUCKETS)
}

// KEYS: the entry or lease, the bucket's number, its index, its times. ARGV: the key, then the script's own.
//
// A new number is the time in microseconds or one more than the last, whatever is greater: a failover that lost the
// last writes cannot give a number again that somebody has seen. It stays below 2^53, which a double holds exactly.
const PRELUDE: &str = r"
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local function number()
  local last = tonumber(redis.call('GET', KEYS[2]) or '0')
  local next = string.format('%.0f', math.max(time[1] * 1000000 + time[2], last + 1))
  redis.call('SET', KEYS[2], next)
  return next
end
local function sweep()
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', '(' .. string.format('%.0f', now_ms), 'LIMIT', 0, 8)) do
    redis.call('ZREM', KEYS[3], key)
    redis.call('ZREM', KEYS[4], key)
  end
end
local function index(ttl)
  redis.call('ZADD', KEYS[3], 0, ARGV[1])
  if ttl == '' then
    redis.call('PERSIST', KEYS[1])
    redis.call('ZREM', KEYS[4], ARGV[1])
  else
    local at = string.format('%.0f', now_ms + tonumber(ttl))
    redis.call('PEXPIREAT', KEYS[1], at)
    redis.call('ZADD', KEYS[4], at, ARGV[1])
  end
end
local function write(value, ttl)
  sweep()
  local n = number()
  redis.call('HSET', KEYS[1], 'v', value, 'n', n)
  index(ttl)
  return n
end
";

const PUT: &str = "return write(ARGV[2], ARGV[3])";

// Returns {1, number, nothing} or {0, number, value}; the last two are nothing where nothing is.
const SWAP: &str = r"
local there = redis.call('HMGET', KEYS[1], 'n', 'v')
if (there[1] or '') == ARGV[2] then return {1, write(ARGV[3], ARGV[4]), false} end
return {0, there[1], there[2]}
";

const DELETE: &str = r"
sweep()
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('ZREM', KEYS[4], ARGV[1])
return redis.call('DEL', KEYS[1])
";

// `HINCRBY` reads and adds 64 bits, which Lua cannot.
const COUNT: &str = r"
local is_new = redis.call('EXISTS', KEYS[1]) == 0
local added = redis.pcall('HINCRBY', KEYS[1], 'v', ARGV[2])
if type(added) == 'table' and added.err then return added end
sweep()
redis.call('HSET', KEYS[1], 'n', number())
if is_new then index(ARGV[3]) end
return redis.call('HGET', KEYS[1], 'v')
";

// ARGV: the key, then a name, an interval and a slack for each bucket. Returns how long to wait. `Levels` is the
// same in Rust.
const TAKE: &str = r"
local now, full_at, ours = time[1] * 1000000 + time[2], {}, redis.call('HGET', KEYS[1], 'v') or ''
for line in string.gmatch(ours, '[^\n]+') do
  local name, at = string.match(line, '^(%S+) (%d+)$')
  if not name then return redis.error_reply('ERR not an integer') end
  if tonumber(at) > now then full_at[name] = tonumber(at) end
end
local wait = 0
for i = 2, #ARGV, 3 do
  local interval, slack = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local at = math.min(full_at[ARGV[i]] or now, now + slack + interval)
  full_at[ARGV[i]] = at
  wait = math.max(wait, at - now - slack)
end
if wait > 0 then return string.format('%.0f', wait) end
for i = 2, #ARGV, 3 do
  full_at[ARGV[i]] = full_at[ARGV[i]] + tonumber(ARGV[i + 1])
end
local lines, last = {}, now
for name, at in pairs(full_at) do
  lines[#lines + 1] = name .. ' ' .. string.format('%.0f', at) .. '\n'
  last = math.max(last, at)
end
write(table.concat(lines), string.format('%.0f', math.floor((last - now) / 1000) + 1))
return '0'
";

const LEASE: &str = r"
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
local n = number()
redis.call('SET', KEYS[1], n, 'PX', ARGV[2])
return n
";

const RENEW: &str = r"
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
";

const RELEASE: &str = r"
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_two_buckets_never_meet() {
        for bucket in 0..BUCKETS {
            let number = global(1_700_000_000_000_000, bucket);
            assert_eq!(local(number, bucket), Some(1_700_000_000_000_000));
            assert_eq!(local(number, (bucket + 1) % BUCKETS), None);
        }
    }

    #[test]
    fn a_key_stays_in_its_bucket_in_every_version() {
        assert_eq!(["", "a", "task/1", "session/é"].map(bucket), [1, 0, 14, 15]);
    }
}
