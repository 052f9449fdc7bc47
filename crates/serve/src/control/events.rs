//! Events of a session as messages of the interface.

use bytes::Bytes;
use headtime_sched::{TaskEvent, TaskRange};

use super::v1::session_event::Event as ClientEvent;
use super::v1::{self, Piece, TaskRef};
use crate::device::Fault;
use crate::engine::messages::Answer;
use crate::engine::session_event::SessionEvent;

/// Converts an event. `task` is the client's number for its task; `None` if it is not about one.
pub(crate) fn message(event: SessionEvent, task: Option<u64>) -> ClientEvent {
    let task = task.unwrap_or_default();
    let piece = |range: TaskRange| Piece { task, lbn: range.lbn, count: range.count };
    match event {
        SessionEvent::Task(event, result) => match event {
            TaskEvent::Delivered { range, .. } => {
                ClientEvent::Delivered(v1::Data { task, lbn: range.lbn, data: result.unwrap_or_default() })
            }
            TaskEvent::GetBuffer { range, .. } => ClientEvent::Wanted(piece(range)),
            TaskEvent::Written { range, .. } => ClientEvent::Written(piece(range)),
            TaskEvent::Superseded { range, .. } => ClientEvent::Superseded(piece(range)),
            TaskEvent::Failed { range, .. } => {
                let (why, fault) = words(result.err().unwrap_or(Fault::Io));
                ClientEvent::Failed(v1::Failed { task, lbn: range.lbn, count: range.count, why, fault })
            }
            TaskEvent::Done { .. } => ClientEvent::Done(TaskRef { task }),
        },
        SessionEvent::NotTaken { range, .. } => ClientEvent::NotTaken(piece(range)),
        SessionEvent::Lost { range, .. } => ClientEvent::Broken(piece(range)),
        SessionEvent::Suspended(suspended) => ClientEvent::Suspended(suspended),
        SessionEvent::DeviceGone => ClientEvent::Gone(v1::Empty {}),
        SessionEvent::ServerEnds => ClientEvent::End(v1::Empty {}),
    }
}

/// Returns the answer to a call that was rejected; `task` is the task that the call names.
pub(crate) fn refused(task: Option<u64>, why: &str) -> ClientEvent {
    ClientEvent::Refused(v1::Refused { task, why: why.into() })
}

/// Returns the answer to the foreground request with this token.
pub(crate) fn answered(token: u64, answer: Answer) -> ClientEvent {
    ClientEvent::Answered(match answer {
        Ok(data) => v1::Answered { token, data, why_not: String::new(), fault: v1::Fault::None.into() },
        Err(fault) => {
            let (why_not, fault) = words(fault);
            v1::Answered { token, data: Bytes::new(), why_not, fault }
        }
    })
}

/// Returns a fault as text for users and as the interface's number.
fn words(fault: Fault) -> (String, i32) {
    (fault.to_string(), v1::Fault::from(fault).into())
}
