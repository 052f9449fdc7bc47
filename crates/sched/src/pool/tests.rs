use headtime_disk::{Angle, Dur};

use super::*;

fn request(id: u64, kind: Kind, lbn: u64) -> Request {
    Request { id, kind, lbn, count: 8, fua: false, sync: true, owner: 0 }
}

fn place(lbn: u64) -> Place {
    Place {
        lbn,
        count: 8,
        cylinder: (lbn / 1000) as u32,
        surface: 0,
        tracks: 1,
        spt: 100,
        angle: Angle::ZERO,
        transfer: Dur::ZERO,
        media: Dur::ZERO,
        end_cylinder: (lbn / 1000) as u32,
        end_surface: 0,
        end_angle: Angle::ZERO,
    }
}

fn insert(pool: &mut Pool, id: u64, kind: Kind, lbn: u64) -> u32 {
    let place = (kind != Kind::Flush).then(|| place(lbn));
    pool.insert(request(id, kind, lbn), place, 0, Time(id))
}

fn eligible(pool: &Pool) -> Vec<u64> {
    pool.eligible.iter().map(|s| pool.get(s).request.id).collect()
}

#[test]
fn the_index_is_sorted_by_position_and_then_by_arrival() {
    let mut pool = Pool::new(8, Key::Cylinder);
    for (id, lbn) in [(0, 5_000), (1, 1_000), (2, 5_500), (3, 9_000)] {
        insert(&mut pool, id, Kind::Read, lbn);
    }
    let ids = |p: &Pool| p.index().iter().map(|e| p.get(e.slot).request.id).collect::<Vec<_>>();
    assert_eq!(ids(&pool), [1, 0, 2, 3]);
    pool.send(0);
    assert_eq!(ids(&pool), [1, 2, 3]);
    assert_eq!((pool.waiting(), pool.eligible()), (3, 3));
}

#[test]
fn a_conflicting_request_waits_until_the_older_one_has_finished() {
    let mut pool = Pool::new(8, Key::Lbn);
    let write = insert(&mut pool, 0, Kind::Write, 100);
    insert(&mut pool, 1, Kind::Read, 104);
    let other = insert(&mut pool, 2, Kind::Read, 500);
    assert_eq!(eligible(&pool), [0, 2]);
    pool.send(write);
    pool.send(other);
    assert_eq!(eligible(&pool), [0u64; 0]);
    pool.finish(other);
    assert_eq!(eligible(&pool), [0u64; 0]);
    pool.finish(write);
    assert_eq!(eligible(&pool), [1]);
}

#[test]
fn an_unblocked_request_is_older_than_those_that_came_after_it() {
    let mut pool = Pool::new(8, Key::Lbn);
    let write = insert(&mut pool, 0, Kind::Write, 100);
    insert(&mut pool, 1, Kind::Write, 100);
    insert(&mut pool, 2, Kind::Write, 900);
    pool.send(write);
    pool.finish(write);
    assert_eq!(eligible(&pool), [1, 2]);
}

#[test]
fn a_flush_waits_for_the_writes_before_it_and_for_no_others() {
    let mut pool = Pool::new(8, Key::Lbn);
    let a = insert(&mut pool, 0, Kind::Write, 100);
    let b = insert(&mut pool, 1, Kind::Write, 200);
    insert(&mut pool, 2, Kind::Flush, 0);
    insert(&mut pool, 3, Kind::Write, 300);
    assert_eq!(eligible(&pool), [0, 1, 3]);
    pool.send(b);
    pool.finish(b);
    assert_eq!(eligible(&pool), [0, 3]);
    pool.send(a);
    pool.finish(a);
    assert_eq!(eligible(&pool), [2, 3]);
    assert_eq!(pool.oldest_flush(), pool.oldest());
}
