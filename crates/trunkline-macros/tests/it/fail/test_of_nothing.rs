#[trunkline::test(transports = [carrier_pigeon], eras = [iron])]
fn books() {}

fn main() {}
