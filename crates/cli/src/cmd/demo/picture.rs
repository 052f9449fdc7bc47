//! The demo's picture: the same stretch of time on four head tracks, then single requests of the best order.

use headtime_disk::command::{Command, Completion, Kind, MediaTimes};
use headtime_disk::time::{Dur, Time};
use headtime_lab::svg::{Axis, Lane, Panel, Span, Timeline};
use headtime_sim::observe::Observer;
use headtime_sim::stats::Done;

/// How long a stretch the picture shows.
const STRETCH: Dur = Dur::from_ms(150);
/// Single requests shown.
const SINGLE: usize = 24;

/// What can be seen; indices into [`kinds`].
const WAITING: usize = 0;
const SEEK: usize = 1;
const ROTATE: usize = 2;
const TRANSFER: usize = 3;

/// One order's run.
pub struct Track {
    /// Its name as typed.
    pub order: &'static str,
    /// What was seen of it.
    pub window: Window,
}

/// Keeps what happens in the picture's stretch of a run.
pub struct Window {
    from: Time,
    /// By command, what the head did for the requests that are not finished yet.
    media: Vec<(Command, Option<MediaTimes>)>,
    requests: Vec<(Done, Option<MediaTimes>)>,
}

impl Window {
    /// A picture that begins at `from`.
    pub fn new(from: Time) -> Window {
        Window { from, media: Vec::new(), requests: Vec::new() }
    }

    fn shows(&self, t: Time) -> bool {
        t >= self.from && t.since(self.from) <= STRETCH + STRETCH
    }
}

impl Observer for Window {
    fn completed(&mut self, command: &Command, _free: u32, completion: &Completion) {
        if self.shows(completion.at) {
            self.media.push((*command, completion.media));
        }
    }

    fn finished(&mut self, done: &Done) {
        if !self.shows(done.done) {
            return;
        }
        // A request has the range of its command; two of one range finish in the order in which they completed.
        let mine = |(c, _): &(Command, Option<MediaTimes>)| c.lbn == done.lbn && c.count == done.count;
        let media = self.media.iter().position(mine).and_then(|i| self.media.remove(i).1);
        self.requests.push((*done, media));
    }
}

/// The picture.
pub fn draw(tracks: &[Track]) -> Timeline {
    let mut panels = vec![Panel {
        title: format!("The same {} milliseconds under each order", ms(STRETCH)),
        axis: Axis::range("ms", 0.0, ms(STRETCH)),
        lane_height: 26.0,
        lanes: tracks.iter().map(head_lane).collect(),
    }];
    if let Some(last) = tracks.last() {
        let from = last.window.from;
        let lanes: Vec<Lane> = last
            .window
            .requests
            .iter()
            .filter(|(d, w)| d.dispatched >= from && w.is_some())
            .take(SINGLE)
            .map(|(d, w)| request_lane(d, *w, from))
            .collect();
        panels.push(Panel {
            title: format!("{} requests under {}, each from the moment it was asked for", lanes.len(), last.order),
            axis: Axis::linear("ms"),
            lane_height: 15.0,
            lanes,
        });
    }
    let mut subtitle = String::from(
        "A Quantum Atlas 10K (1999, 10,025 turns a minute) and ten programs that ask for random blocks. Moving data is the green \
         part; everything else is the way there. SPTF knows where the platter is as well as where the arm is, so it waits less \
         for both.",
    );
    let cached = |t: &Track| t.window.requests.iter().any(|(_, m)| m.is_none());
    if tracks.iter().any(cached) {
        subtitle += " Where a track is blank, the drive writes blocks from its cache that it accepted before, or has nothing to do.";
    }
    Timeline { title: "Where each millisecond of head time goes".into(), subtitle, kinds: kinds(), panels }
}

fn kinds() -> Vec<(String, bool)> {
    [
        ("waiting for its turn", true),
        ("seek: the arm moves", false),
        ("rotate: the platter comes round", false),
        ("transfer: data", false),
    ]
    .map(|(name, thin)| (name.to_string(), thin))
    .to_vec()
}

/// What the head did, whoever it was for.
fn head_lane(track: &Track) -> Lane {
    let from = track.window.from;
    let mut spans = Vec::new();
    let mut done = 0;
    for (d, work) in &track.window.requests {
        if d.done >= from && d.done.since(from) <= STRETCH {
            done += 1;
        }
        if let Some(w) = work {
            draw_work(&mut spans, w, from, &describe(d));
        }
    }
    Lane { label: track.order.into(), note: format!("{done} done"), spans }
}

fn request_lane(d: &Done, work: Option<MediaTimes>, from: Time) -> Lane {
    let hint = describe(d);
    let mut spans = Vec::new();
    if let Some(w) = work {
        spans.push(Span { from: at(d.due, from), to: at(w.start, from), kind: WAITING, hint: hint.clone() });
        draw_work(&mut spans, &w, from, &hint);
    }
    let letter = if d.kind == Kind::Read { "read" } else { "write" };
    Lane { label: format!("{letter} at {}", d.lbn), note: format!("{:.1} ms", d.response().as_ms_f64()), spans }
}

fn draw_work(spans: &mut Vec<Span>, w: &MediaTimes, from: Time, hint: &str) {
    let mut a = w.start;
    for (takes, kind) in [(w.seek(), SEEK), (w.rotate(), ROTATE), (w.transfer(), TRANSFER)] {
        let b = a + takes;
        if b > a && b > from {
            spans.push(Span { from: at(a, from), to: at(b, from), kind, hint: hint.to_string() });
        }
        a = b;
    }
}

fn describe(d: &Done) -> String {
    let what = match d.kind {
        Kind::Read => "read",
        Kind::Write => "write",
        Kind::Flush => "flush",
    };
    format!("{what} of {} sectors at {}, answered after {:.2} ms", d.count, d.lbn, d.response().as_ms_f64())
}

/// Milliseconds since the picture's beginning, negative before it.
fn at(t: Time, from: Time) -> f64 {
    (t.0 as f64 - from.0 as f64) / 1e6
}

fn ms(d: Dur) -> f64 {
    d.as_ms_f64()
}
