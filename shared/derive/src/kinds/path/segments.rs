//! Segments: the text of a path.

use keys::escape;

/// How many segments a path has.
pub(super) fn depth(path: &str) -> usize {
    path.matches('/').count()
}

/// A path of these segments, below another; `None` when it would have more than `depth_max`.
pub(super) fn below<'a>(
    above: &str,
    names: impl DoubleEndedIterator<Item = &'a String>,
    depth_max: usize,
) -> Option<String> {
    let mut path = above.to_owned();
    for name in names {
        path.push('/');
        path.push_str(&escape::segment(name));
    }
    (depth(&path) <= depth_max).then_some(path)
}
