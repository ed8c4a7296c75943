struct Hotel;

#[trunkline::toolbox]
impl Clone for Hotel {
    fn clone(&self) -> Self {
        Self
    }
}

fn main() {}
