//! A session that sends calls faster than they are answered, sends invalid ones, and disconnects in
//! the middle.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use headtime_serve::control::v1::session_call::Call;
use headtime_serve::control::v1::{self, Data, Kind, Register, TaskRef};
use headtime_serve::internals::control::service::Service;
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::session::Session;
use super::shadow::SECTOR;
use super::{Done, Standing};

/// Sectors outside of exports, which it may write.
const FIRST: u64 = 30_000;
const SECTORS: u64 = 1_000;
/// The longest pause between two bursts.
const PAUSE: u64 = 200_000;
/// Calls queued at a time, as on a connection whose messages arrive in large pieces.
const CALLS: usize = 512;
/// The largest burst, calls.
const BURST: u64 = 400;

/// Sends calls while the server exists.
pub async fn talk(service: Service, mut rng: Xoshiro256PlusPlus, done: Rc<RefCell<Done>>, standing: Standing) {
    let mut chance = move |of: u64| rng.next_u64() % of;
    while !standing.may_end() {
        let mut session = Session::open(&service, "talker", 1 + chance(64), CALLS, &standing).await;
        let mut tasks = 0;
        for _ in 0..1 + chance(4) {
            tokio::time::sleep(Duration::from_millis(chance(PAUSE))).await;
            // Mostly the same call repeatedly: calls answered at once do not build up a queue.
            let most = chance(8);
            for _ in 0..chance(BURST) {
                let lbn = FIRST + chance(SECTORS);
                let task = chance(tasks + 1);
                let call = match if chance(8) > 0 { most } else { chance(8) } {
                    0 => {
                        tasks += 1;
                        let ranges = vec![v1::Range { lbn, count: 1 + chance(64) }];
                        let kind = if chance(2) == 0 { Kind::Read } else { Kind::Write };
                        let point_in_time = chance(50) == 0;
                        let unit = 1 + chance(4) as u32;
                        let (blksize, min_pickup) = (unit, unit);
                        Call::Register(Register {
                            task: tasks,
                            kind: kind.into(),
                            ranges,
                            blksize,
                            min_pickup,
                            point_in_time,
                        })
                    }
                    1 => Call::Abort(TaskRef { task }),
                    2 => Call::Promote(TaskRef { task }),
                    3 => Call::Data(Data { task, lbn, data: vec![7; SECTOR].into() }),
                    4 if chance(2) == 0 => Call::Suspend(v1::Empty {}),
                    4 => Call::Resume(v1::Empty {}),
                    _ => Call::Taken(chance(3)),
                };
                if !session.say(call).await {
                    break;
                }
                done.borrow_mut().talked += 1;
            }
            if chance(3) > 0 {
                // It reads events for a while.
                let hears = async { while session.hear().await.is_some() {} };
                let _ = tokio::time::timeout(Duration::from_millis(chance(PAUSE)), hears).await;
            }
        }
    }
}
