//! A session of the control interface that reads all of an export, as a scrub does.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use headtime_serve::control::service::Service;
use headtime_serve::control::session;
use headtime_serve::control::v1::session_call::Call;
use headtime_serve::control::v1::session_event::Event;
use headtime_serve::control::v1::{self, Kind, Register, SessionCall};
use tokio::sync::mpsc::channel;

use super::Done;
use super::shadow::{SECTOR, Shadow};

/// Between two tasks.
const PAUSE: u64 = 300_000;

/// Reads everything again and again, as long as the server is there.
pub async fn read_all(service: Service, first: u64, shadow: Rc<RefCell<Shadow>>, done: Rc<RefCell<Done>>) {
    let (calls, heard) = channel(16);
    let (out, mut events) = channel(16);
    tokio::spawn(session::run(service, heard, out));
    let say = async |call| calls.send(SessionCall { call: Some(call) }).await.is_ok();
    let open = v1::Open { name: "scrub".into(), priority: 100, window: 64 };
    if !say(Call::Open(open)).await {
        return;
    }
    for task in 0.. {
        // Most of the time is the other clients'.
        tokio::time::sleep(Duration::from_millis(PAUSE)).await;
        let sectors = shadow.borrow().len();
        let kind = Kind::Read.into();
        let ranges = vec![v1::Range { lbn: first, count: sectors as u64 }];
        let point_in_time = task % 2 == 1;
        let register = Register { task, kind, ranges, blksize: 8, min_pickup: 8, point_in_time };
        let mut reading: Vec<_> = (0..sectors / 8).map(|n| Some(shadow.borrow_mut().read(n * 8..n * 8 + 8))).collect();
        if !say(Call::Register(register)).await {
            return;
        }
        while reading.iter().any(Option::is_some) {
            let Some(Ok(event)) = events.recv().await else { return };
            match event.event {
                Some(Event::Delivered(d)) => {
                    let from = (d.lbn - first) as usize;
                    let count = d.data.len() / SECTOR;
                    for (n, data) in d.data.chunks(8 * SECTOR).enumerate() {
                        let read = reading[from / 8 + n].take().expect("a block is delivered once");
                        shadow.borrow_mut().have_read(read, Some(data));
                    }
                    done.borrow_mut().delivered += count as u64;
                    if !say(Call::Taken(count as u64)).await {
                        return;
                    }
                }
                Some(Event::Registered(_)) if point_in_time => {
                    reading.iter_mut().flatten().for_each(|r| shadow.borrow_mut().fix(r));
                }
                Some(Event::Failed(f)) => {
                    let from = (f.lbn - first) as usize;
                    let blocks = from / 8..(from + f.count as usize).div_ceil(8);
                    for read in reading[blocks].iter_mut().filter_map(Option::take) {
                        shadow.borrow_mut().have_read(read, None);
                    }
                }
                Some(Event::Broken(_) | Event::Gone(_) | Event::End(_) | Event::Refused(_)) | None => {
                    reading.iter_mut().filter_map(Option::take).for_each(|r| shadow.borrow_mut().have_read(r, None));
                    return;
                }
                Some(_) => {}
            }
        }
    }
}
