//! The upper convex hull of a growing set of points, points in any order.

use std::cmp::Ordering;

/// Vertices kept at most. The hull of random points has about as many vertices
/// as the logarithm of their number; this is for adversaries.
pub(super) const MAX_VERTICES: usize = 256;

/// Coordinates stay below 2⁶², so that differences fit `i64`, their products
/// `i128`, and the orientation test is exact.
pub(super) const LIMIT: i64 = (1 << 62) - 1;

/// A point in nanoseconds, relative to its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) x: i64,
    pub(super) y: i64,
}

/// The upper hull: the vertices a line must clear to pass above all points.
#[derive(Clone, Debug, Default)]
pub(super) struct Hull {
    vertices: Vec<Point>,
}

impl Hull {
    /// Returns the vertices, ascending in `x`, slopes strictly falling.
    pub(super) fn vertices(&self) -> &[Point] {
        &self.vertices
    }

    /// Returns whether every line above the hull is above `p` anyway.
    pub(super) fn covers(&self, p: Point) -> bool {
        let i = self.vertices.partition_point(|v| v.x < p.x);
        match self.vertices.get(i) {
            Some(v) if v.x == p.x => p.y <= v.y,
            Some(&right) if i > 0 => orientation(self.vertices[i - 1], p, right) >= 0,
            _ => false,
        }
    }

    /// Adds a point, unless it is covered.
    pub(super) fn insert(&mut self, p: Point) {
        if self.covers(p) {
            return;
        }
        let v = &mut self.vertices;
        let i = v.partition_point(|v| v.x < p.x);
        if v.get(i).is_some_and(|v| v.x == p.x) {
            v[i] = p;
        } else {
            v.insert(i, p);
        }
        let mut right = i + 1;
        while right + 1 < v.len() && orientation(p, v[right], v[right + 1]) >= 0 {
            right += 1;
        }
        v.drain(i + 1..right);
        let mut left = i;
        while left >= 2 && orientation(v[left - 2], v[left - 1], p) >= 0 {
            left -= 1;
        }
        v.drain(left..i);
        if v.len() > MAX_VERTICES {
            self.prune();
        }
    }

    /// Drops the vertex that stands out least between its neighbours. Leaving
    /// out a constraint only admits more lines, so the truth stays admitted.
    fn prune(&mut self) {
        let height = |w: &[Point]| {
            let along = (w[2].y as f64 - w[0].y as f64) / (w[2].x as f64 - w[0].x as f64);
            (w[1].y as f64 - w[0].y as f64) - along * (w[1].x as f64 - w[0].x as f64)
        };
        let flattest = self
            .vertices
            .windows(3)
            .map(height)
            .enumerate()
            .min_by(|a, b| a.1.partial_cmp(&b.1).unwrap_or(Ordering::Equal));
        if let Some((before, _)) = flattest {
            self.vertices.remove(before + 1);
        }
    }
}

/// Positive when a → b → c turns left (b lies below the line from a to c).
fn orientation(a: Point, b: Point, c: Point) -> i128 {
    let d = |p: i64, q: i64| i128::from(q) - i128::from(p);
    d(a.x, b.x) * d(a.y, c.y) - d(a.y, b.y) * d(a.x, c.x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn p(x: i64, y: i64) -> Point {
        Point { x, y }
    }

    #[test]
    fn a_point_below_the_chord_is_covered_and_one_above_replaces_it() {
        let mut hull = Hull::default();
        for q in [p(0, 0), p(10, 0), p(5, -1)] {
            hull.insert(q);
        }
        assert_eq!(hull.vertices(), [p(0, 0), p(10, 0)]);
        hull.insert(p(5, 3));
        hull.insert(p(6, 1));
        assert_eq!(hull.vertices(), [p(0, 0), p(5, 3), p(10, 0)]);
        hull.insert(p(10, 100));
        assert_eq!(hull.vertices(), [p(0, 0), p(10, 100)]);
    }

    #[test]
    fn the_extremes_of_the_coordinates_do_not_overflow() {
        let mut hull = Hull::default();
        for q in [p(-LIMIT, LIMIT), p(LIMIT, -LIMIT), p(0, 1), p(1, -LIMIT)] {
            hull.insert(q);
        }
        assert_eq!(hull.vertices(), [p(-LIMIT, LIMIT), p(0, 1), p(LIMIT, -LIMIT)]);
    }

    #[test]
    fn pruning_keeps_the_ends_and_drops_constraints_only() {
        let all: Vec<Point> = (-600..=600).map(|x| p(x, -x * x)).collect();
        let mut hull = Hull::default();
        all.iter().for_each(|&q| hull.insert(q));
        let v = hull.vertices();
        assert_eq!(v.len(), MAX_VERTICES);
        assert_eq!((v[0], v[v.len() - 1]), (all[0], all[all.len() - 1]));
        assert!(v.iter().all(|q| all.contains(q)));
        assert!(v.windows(3).all(|w| orientation(w[0], w[1], w[2]) < 0));
    }

    proptest! {
        #[test]
        fn the_hull_is_that_of_all_points_whatever_their_order(
            points in prop::collection::vec((-50i64..50, -50i64..50), 1..80)
        ) {
            let mut hull = Hull::default();
            for &(x, y) in &points {
                hull.insert(p(x, y));
            }
            let v = hull.vertices();
            prop_assert!(v.windows(2).all(|w| w[0].x < w[1].x));
            prop_assert!(v.windows(3).all(|w| orientation(w[0], w[1], w[2]) < 0));
            prop_assert!(v.iter().all(|q| points.contains(&(q.x, q.y))));
            for &(x, y) in &points {
                prop_assert!(hull.covers(p(x, y)), "({x}, {y}) outside {v:?}");
            }
        }
    }
}
