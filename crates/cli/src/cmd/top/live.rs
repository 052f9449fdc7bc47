//! The terminal: drawing and keys.

use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use headtime_serve::control::v1::ChangeRequest;
use headtime_serve::control::v1::change_request::Change;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table, TableState};
use ratatui::{DefaultTerminal, Frame};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::feed::{Feed, Update};
use super::figures::{HeadTime, History, Session, View};
use super::text;
use crate::failure::Failure;

/// Most delay until a key is noticed.
const KEY_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Display time of the answer to a key.
const ANSWER_DISPLAY_TIME: Duration = Duration::from_secs(5);
/// Width of a session's bar, cells.
const PROGRESS: usize = 20;
const KEYS: &str = "q quit   up/down select session   p pause/resume   +/- priority";
const PARTS: [Color; 5] = [Color::Red, Color::Yellow, Color::Green, Color::Blue, Color::DarkGray];

/// The terminal in raw mode: it is restored on every exit path. (Ratatui's own hook restores it
/// before a panic's message.) Ratatui's way to show the cursor again panics if the terminal has
/// hung up.
struct Terminal(ManuallyDrop<DefaultTerminal>);

impl Terminal {
    fn take() -> io::Result<Terminal> {
        ratatui::try_init().map(|t| Terminal(ManuallyDrop::new(t))).inspect_err(|_| _ = ratatui::try_restore())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.0.show_cursor();
        let _ = ratatui::try_restore();
    }
}

/// The action of a key.
#[derive(Debug, PartialEq)]
enum Asked {
    Nothing,
    Quit,
    Stop,
    Change(ChangeRequest),
}

#[derive(Debug, Default)]
struct State {
    history: History,
    view: Option<View>,
    lost: Option<String>,
    said: Option<(String, Instant)>,
    selected: TableState,
}

/// Shows updates until the user or a signal ends it.
pub fn run(feed: &Feed, stopped: &AtomicBool) -> Result<(), Failure> {
    let failed = |e: io::Error| Failure::Input(format!("the terminal cannot be used: {e}"));
    let mut terminal = Terminal::take().map_err(failed)?;
    let mut state = State::default();
    let mut changed = true;
    loop {
        while let Ok(update) = feed.updates.try_recv() {
            state.update(update);
            changed = true;
        }
        if stopped.load(Ordering::Relaxed) {
            return Err(Failure::Stopped);
        }
        changed |= state.forget();
        if std::mem::take(&mut changed) {
            terminal.0.draw(|frame| state.draw(frame)).map_err(failed)?;
        }
        wait_for_key(if changed { Duration::ZERO } else { KEY_POLL_INTERVAL })?;
        while event::poll(Duration::ZERO).map_err(failed)? {
            changed = true;
            match event::read().map_err(failed)? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match state.key(key) {
                    Asked::Nothing => {}
                    Asked::Quit => return Ok(()),
                    Asked::Stop => return Err(Failure::Stopped),
                    Asked::Change(change) => feed.change(change),
                },
                _ => {}
            }
            wait_for_key(Duration::ZERO)?;
        }
    }
}

/// Waits for a key, at most `most`. Fails if the terminal has hung up: the reader of keys would
/// poll it without end.
fn wait_for_key(most: Duration) -> Result<(), Failure> {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let most = Timespec { tv_sec: 0, tv_nsec: most.subsec_nanos().into() };
    // A signal may interrupt the poll.
    let _ = rustix::event::poll(&mut fds, Some(&most));
    match fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        true => Err(Failure::Stopped),
        false => Ok(()),
    }
}

impl State {
    fn update(&mut self, update: Update) {
        match update {
            Update::Info(info) => {
                self.history.info(&info);
                self.view = None;
                if self.lost.take().is_some() {
                    self.say("the server is there again".into());
                }
            }
            Update::Snapshot(snapshot) => {
                if let Some(view) = self.history.view(*snapshot) {
                    self.keep_selected(&view);
                    self.view = Some(view);
                }
            }
            Update::Lost(why) => self.lost = Some(why),
            Update::Refused(why) => self.say(format!("not done: {why}")),
        }
    }

    /// Keeps the selected session selected while sessions come and go.
    fn keep_selected(&mut self, view: &View) {
        let before = self.session().map(|s| s.session);
        let at = before.and_then(|id| view.sessions.iter().position(|s| s.session == id));
        let last = view.sessions.len().checked_sub(1);
        self.selected.select(last.map(|last| at.or(self.selected.selected()).unwrap_or(0).min(last)));
    }

    fn session(&self) -> Option<&Session> {
        self.view.as_ref()?.sessions.get(self.selected.selected()?)
    }

    fn say(&mut self, what: String) {
        self.said = Some((what, Instant::now()));
    }

    /// Drops an expired answer; returns whether there was one.
    fn forget(&mut self) -> bool {
        self.said.take_if(|(_, at)| at.elapsed() > ANSWER_DISPLAY_TIME).is_some()
    }

    fn key(&mut self, key: KeyEvent) -> Asked {
        let sessions = self.view.as_ref().map_or(0, |v| v.sessions.len());
        let at = self.selected.selected().unwrap_or(0);
        let change = match key.code {
            // In raw mode the terminal sends no signal for it.
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Asked::Stop,
            KeyCode::Char('q') | KeyCode::Esc => return Asked::Quit,
            KeyCode::Up if sessions > 0 => {
                self.selected.select(Some(at.saturating_sub(1)));
                return Asked::Nothing;
            }
            KeyCode::Down if sessions > 0 => {
                self.selected.select(Some((at + 1).min(sessions - 1)));
                return Asked::Nothing;
            }
            KeyCode::Char('p') => |s: &Session| Change::Suspended(!s.suspended),
            KeyCode::Char('+' | '=') => |s: &Session| Change::Priority(more(s.priority)),
            KeyCode::Char('-') => |s: &Session| Change::Priority(less(s.priority)),
            _ => return Asked::Nothing,
        };
        let Some(session) = self.session() else {
            self.say("no session is selected".into());
            return Asked::Nothing;
        };
        let (id, name, change) = (session.session, session.name.clone(), change(session));
        self.say(match change {
            Change::Suspended(true) => format!("{name}: pause"),
            Change::Suspended(false) => format!("{name}: resume"),
            Change::Priority(p) => format!("{name}: priority {p}"),
            Change::MaxMbS(mb) => format!("{name}: at most {mb} MB/s"),
            Change::Close(_) => String::new(),
        });
        Asked::Change(ChangeRequest { session: id, change: Some(change) })
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let [top, middle, foot] =
            Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
        let title = match (&self.lost, &self.view) {
            (Some(why), _) => {
                let text = format!("the server is gone ({why}); waiting for it to come back");
                Line::styled(text, bold.fg(Color::Red))
            }
            (None, Some(view)) => Line::styled(text::title(view), bold),
            (None, None) => Line::styled("connected; the first interval is not over yet", bold),
        };
        frame.render_widget(title, top);
        if let Some(view) = &self.view {
            body(frame, middle, view, &mut self.selected);
        }
        let said = self.said.as_ref().map(|(said, _)| Span::styled(format!("   {said}"), bold));
        let mut keys = Line::styled(KEYS, Style::new().fg(Color::DarkGray));
        keys.spans.extend(said);
        frame.render_widget(keys, foot);
    }
}

fn more(priority: u32) -> u32 {
    priority.saturating_add((priority / 4).max(1)).min(1_000_000)
}

fn less(priority: u32) -> u32 {
    priority.saturating_sub((priority / 5).max(1)).max(1)
}

fn body(frame: &mut Frame<'_>, area: Rect, view: &View, selected: &mut TableState) {
    let lines = text::lines(view);
    let streams_rows = if view.streams.is_empty() { 0 } else { view.streams.len() as u16 + 2 };
    let [head, words, exports, waits, streams, sessions] = Layout::vertical([
        Constraint::Length(3),
        Constraint::Length(lines.len() as u16 + 1),
        Constraint::Length(view.exports.len() as u16 + 2),
        Constraint::Length(view.exports.len() as u16 + 2),
        Constraint::Length(streams_rows),
        Constraint::Min(0),
    ])
    .areas(area);
    let h = &view.head_time;
    let bar = head_bar(h, head.width as usize);
    frame.render_widget(Paragraph::new(vec![Line::default(), bar, legend(h)]), head);
    frame.render_widget(Paragraph::new(lines.into_iter().map(Line::from).collect::<Vec<_>>()), words);
    let heads = |names: &[&'static str]| Row::new(names.to_vec()).style(Style::new().add_modifier(Modifier::BOLD));
    let rows = view.exports.iter().map(|e| Row::new(text::export(e)));
    let widths = [20, 9, 9, 9, 9, 14, 7, 12].map(Constraint::Length);
    frame.render_widget(Table::new(rows, widths).header(heads(&text::EXPORT_HEADS)), exports);
    let rows = view.exports.iter().map(|e| Row::new(text::wait(e)));
    let widths = [20, 7, 22, 10, 8, 9, 9, 9, 9].map(Constraint::Length);
    frame.render_widget(Table::new(rows, widths).header(heads(&text::WAIT_HEADS)), waits);
    let rows = view.streams.iter().map(|s| Row::new(text::stream(s)));
    let widths = [20, 9, 7, 12, 14, 9, 8, 9, 9].map(Constraint::Length);
    if streams_rows > 0 {
        frame.render_widget(Table::new(rows, widths).header(heads(&text::STREAM_HEADS)), streams);
    }
    if view.sessions.is_empty() {
        return frame.render_widget("no sessions: nothing asks for background work", sessions);
    }
    let rows = view.sessions.iter().map(|s| {
        let mut cells = text::session(s).to_vec();
        let full = ((s.share() * PROGRESS as f64) as usize).min(PROGRESS);
        cells.insert(5, "█".repeat(full) + &"░".repeat(PROGRESS - full));
        Row::new(cells)
    });
    let mut names = text::SESSION_HEADS.to_vec();
    names.insert(5, "");
    let widths = [8, 18, 9, 13, 8, PROGRESS as u16, 7, 9, 12].map(Constraint::Length);
    let table = Table::new(rows, widths).header(heads(&names));
    let table = table.row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_stateful_widget(table, sessions, selected);
}

fn head_bar(h: &HeadTime, width: usize) -> Line<'static> {
    let parts = text::cells(h, width).into_iter().zip(PARTS).zip(["█", "█", "█", "█", "░"]);
    Line::from(
        parts.map(|((n, colour), sign)| Span::styled(sign.repeat(n), Style::new().fg(colour))).collect::<Vec<_>>(),
    )
}

/// The legend of the bar, each word in its colour.
fn legend(h: &HeadTime) -> Line<'static> {
    let words = text::legend(h);
    let parts = words.split(", ").zip(PARTS);
    Line::from(parts.map(|(word, c)| Span::styled(format!("{word}  "), Style::new().fg(c))).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal as Drawing;
    use ratatui::backend::TestBackend;

    fn state(sessions: &[(u32, u32, bool)]) -> State {
        let session = |&(session, priority, suspended): &(u32, u32, bool)| Session {
            session,
            name: format!("scrub{session}"),
            priority,
            suspended,
            done_bytes: 50,
            wanted_bytes: 50,
            ..Session::default()
        };
        let view = View { sessions: sessions.iter().map(session).collect(), ..View::default() };
        let mut state = State::default();
        state.keep_selected(&view);
        state.view = Some(view);
        state
    }

    fn press(state: &mut State, code: KeyCode) -> Asked {
        state.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn change(session: u32, change: Change) -> Asked {
        Asked::Change(ChangeRequest { session, change: Some(change) })
    }

    #[test]
    fn keys_are_about_the_selected_session() {
        let mut s = state(&[(3, 100, false), (4, 1, true)]);
        assert_eq!(press(&mut s, KeyCode::Char('p')), change(3, Change::Suspended(true)));
        assert_eq!(press(&mut s, KeyCode::Char('+')), change(3, Change::Priority(125)));
        press(&mut s, KeyCode::Down);
        press(&mut s, KeyCode::Down);
        assert_eq!(press(&mut s, KeyCode::Char('p')), change(4, Change::Suspended(false)));
        assert_eq!(press(&mut s, KeyCode::Char('-')), change(4, Change::Priority(1)));
        assert_eq!(press(&mut s, KeyCode::Char('=')), change(4, Change::Priority(2)));
        // An earlier session has ended: the same session stays selected.
        let fewer = View { sessions: s.view.as_ref().unwrap().sessions[1..].to_vec(), ..View::default() };
        s.keep_selected(&fewer);
        s.view = Some(fewer);
        assert_eq!(press(&mut s, KeyCode::Char('p')), change(4, Change::Suspended(false)));
    }

    #[test]
    fn keys_without_a_session_do_nothing_and_say_so() {
        let mut s = state(&[]);
        for code in [KeyCode::Up, KeyCode::Down, KeyCode::Char('p'), KeyCode::Char('+'), KeyCode::Char('x')] {
            assert_eq!(press(&mut s, code), Asked::Nothing);
        }
        assert!(s.said.is_some());
        assert_eq!(press(&mut s, KeyCode::Char('q')), Asked::Quit);
        assert_eq!(s.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Asked::Stop);
    }

    #[test]
    fn it_can_be_drawn_at_any_size_and_says_when_the_server_is_gone() {
        let mut s = state(&[(3, 100, false), (4, 1, true)]);
        for (width, height) in [(1, 1), (20, 3), (80, 24), (300, 100)] {
            let mut drawing = Drawing::new(TestBackend::new(width, height)).unwrap();
            drawing.draw(|frame| s.draw(frame)).unwrap();
        }
        let shown = |s: &mut State| {
            let mut drawing = Drawing::new(TestBackend::new(120, 30)).unwrap();
            drawing.draw(|frame| s.draw(frame)).unwrap();
            drawing.backend().to_string()
        };
        let text = shown(&mut s);
        assert!(text.contains("scrub3") && text.contains("paused") && text.contains("50.0%"), "{text}");
        s.update(Update::Lost("it ended".into()));
        assert!(shown(&mut s).contains("the server is gone (it ended)"));
        s.update(Update::Info(Default::default()));
        assert!(shown(&mut s).contains("the server is there again"));
    }
}
