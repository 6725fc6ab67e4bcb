//! Whether nodes of a graph run one after the other.

use super::room;

/// The last node that does something, of a graph in which those that do run one after the other. `Err(false)`: some could run
/// beside each other; `Err(true)`: there is no memory. `waits` says for which nodes each one waits.
///
/// Two that can be begun at the same time wait for neither. Where there are never two, each waits for all before it.
pub fn last_in_row(waits: &[Vec<usize>], does: impl Fn(usize) -> bool) -> Result<Option<usize>, bool> {
    let mut open: Vec<usize> = room(waits.len()).ok_or(true)?;
    open.extend(waits.iter().map(Vec::len));
    let followers = Followers::of(waits).ok_or(true)?;
    let (mut others, mut next, mut last): (Vec<usize>, _, _) = (room(waits.len()).ok_or(true)?, None, None);
    let begin = |node: usize, others: &mut Vec<usize>, next: &mut Option<usize>| {
        if !does(node) {
            others.push(node);
            return Ok(());
        }
        if next.replace(node).is_some() { Err(false) } else { Ok(()) }
    };
    for node in (0..waits.len()).filter(|node| open.get(*node) == Some(&0)) {
        begin(node, &mut others, &mut next)?;
    }
    while let Some(node) = others.pop().or_else(|| {
        last = next.or(last);
        next.take()
    }) {
        for follower in followers.behind(node) {
            if let Some(left) = open.get_mut(*follower) {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    begin(*follower, &mut others, &mut next)?;
                }
            }
        }
    }
    Ok(last)
}

/// For each node those that wait for it.
struct Followers {
    /// Where those of a node begin, and at the end those of the last one end.
    begin: Vec<usize>,
    all: Vec<usize>,
}

impl Followers {
    fn of(waits: &[Vec<usize>]) -> Option<Self> {
        let mut begin = room(waits.len() + 1)?;
        begin.resize(waits.len() + 1, 0);
        for before in waits.iter().flatten() {
            *begin.get_mut(*before + 1)? += 1;
        }
        let mut sum = 0;
        for place in &mut begin {
            sum += *place;
            *place = sum;
        }
        let mut all = room(sum)?;
        all.resize(sum, 0);
        let mut place = room(begin.len())?;
        place.extend_from_slice(&begin);
        for (node, waits) in waits.iter().enumerate() {
            for before in waits {
                let at = place.get_mut(*before)?;
                *all.get_mut(*at)? = node;
                *at += 1;
            }
        }
        Some(Self { begin, all })
    }

    fn behind(&self, node: usize) -> &[usize] {
        let ends = self.begin.get(node).zip(self.begin.get(node + 1));
        ends.and_then(|(begin, end)| self.all.get(*begin..*end)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(waits: &[&[usize]], idle: &[usize]) -> Result<Option<usize>, bool> {
        let waits: Vec<Vec<usize>> = waits.iter().map(|waits| waits.to_vec()).collect();
        last_in_row(&waits, |node| !idle.contains(&node))
    }

    #[test]
    fn one_after_the_other_is_a_row_however_it_is_said() {
        assert_eq!(last(&[], &[]), Ok(None));
        assert_eq!(last(&[&[], &[0], &[1]], &[]), Ok(Some(2)));
        // In another order, and with edges that say nothing new.
        assert_eq!(last(&[&[2, 1], &[2], &[]], &[]), Ok(Some(0)));
        assert_eq!(last(&[&[], &[0], &[0, 1], &[2, 0, 1]], &[]), Ok(Some(3)));
    }

    #[test]
    fn what_could_run_beside_another_is_no_row() {
        assert_eq!(last(&[&[], &[]], &[]), Err(false));
        assert_eq!(last(&[&[], &[0], &[0], &[1, 2]], &[]), Err(false));
        // A long branch beside a short one, seen late.
        assert_eq!(last(&[&[], &[0], &[1], &[2], &[0]], &[1, 2]), Err(false));
        assert_eq!(last(&[&[], &[0], &[1], &[0], &[3]], &[1, 3]), Err(false));
    }

    #[test]
    fn nodes_that_do_nothing_on_a_device_do_not_count() {
        // An event beside a kernel, and two empty nodes between kernels.
        assert_eq!(last(&[&[], &[0], &[0]], &[2]), Ok(Some(1)));
        assert_eq!(last(&[&[], &[0], &[0], &[1, 2], &[3]], &[1, 2]), Ok(Some(4)));
        assert_eq!(last(&[&[], &[0]], &[0, 1]), Ok(None));
        // Nodes that wait for each other are never begun.
        assert_eq!(last(&[&[1], &[0]], &[]), Ok(None));
    }
}
