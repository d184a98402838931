internal import PolicyEngine

/// A policy can have more states than fit in memory. The classifier then forgets them, and
/// determines the state of a directory again from the names in its path when the walk reaches it.
extension ContainerScanner {
  /// Returns the classifier's state of a directory in the walk.
  mutating func policy(of state: State) -> Classifier.State {
    if state.generation == generation { return state.policy }
    let found = classifier.state(scan.query(state.directory))
    return scan.siblings[state.directory].map { classifier.holding(found, $0) } ?? found
  }

  /// Makes the classifier forget its states except that of the current directory; returns its new
  /// state.
  mutating func forgetAll(but state: Classifier.State) -> Classifier.State {
    var kept = [state]
    classifier.compact(keeping: &kept)
    generation += 1
    return kept[0]
  }
}
