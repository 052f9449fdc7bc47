//! What only the tests and measurements of this workspace use. It may change at any time.

pub mod apps {
    pub mod sums {
        pub use crate::apps::sums::{Known, Sums, SumsError};
    }
}

pub mod control {
    pub mod arriving {
        pub use crate::control::arriving::{MAX_CALL, MAX_LONGEST, MAX_TIME};
    }
    pub mod caches {
        pub use crate::control::caches::Cached;
    }
    pub mod incoming {
        pub use crate::control::incoming::{MAX_ANSWERED, MAX_CONNECTIONS, MAX_STREAMS};
    }
    pub mod layouts {
        pub use crate::control::layouts::{Ended, Layouts, MoveError};
    }
    pub mod rpc {
        pub use crate::control::rpc::over;
    }
    pub mod service {
        pub use crate::control::service::{ForCache, Service};
    }
    pub mod session {
        pub use crate::control::session::{MAX_ANSWERS, run};
    }
}

pub mod destage {
    pub mod inside {
        pub use crate::destage::inside::{Caches, Working};
    }
    pub mod machine {
        pub use crate::destage::machine::Machine;
    }
}

pub mod device {
    pub mod faulty {
        pub use crate::device::faulty::{Faulty, Planted};
    }
    pub mod null {
        pub use crate::device::null::Null;
    }
}

pub mod engine {
    pub mod background {
        pub use crate::engine::background::{MAX_BEYOND, MAX_EVENTS, MAX_STAGED, MAX_WINDOW, MAX_WINDOWS};
    }
    pub mod image {
        pub use crate::engine::image::MAX_IMAGES;
    }
    pub mod paced {
        pub use crate::engine::paced::{MAX_CREDIT, MAX_RANGES, OTHER_WORK_RATIO};
    }
    pub mod staged {
        pub use crate::engine::staged::MAX_OF_ALL;
    }
}

pub mod loopback {
    pub use crate::loopback::{MAX_ANSWERED, MAX_CONNECTIONS};
}

pub mod net {
    pub mod connection {
        pub use crate::net::connection::{Ended, Shared, UNREAD_TIMEOUT, serve};
    }
    pub mod listener {
        pub use crate::net::listener::{COME_AT_ONCE, COMES_EACH, MAX_NEGOTIATING};
    }
    pub mod tls {
        pub use crate::net::tls::{TlsError, TlsFiles, acceptor};
    }
}
