internal import PolicyEngine

/// A policy may be made to have more states than there is memory for. Then the classifier forgets
/// them, and a directory's is found again, when the walk comes to it, by the names from the root.
extension ContainerScanner {
  /// The classifier's state of a directory that the walk is in.
  mutating func policy(of state: State) -> Classifier.State {
    if state.generation == generation { return state.policy }
    let found = classifier.state(scan.query(state.directory))
    return scan.siblings[state.directory].map { classifier.holding(found, $0) } ?? found
  }

  /// Lets the classifier forget its states but the one of the directory in hand, which is given anew.
  mutating func forgetAll(but state: Classifier.State) -> Classifier.State {
    var kept = [state]
    classifier.compact(keeping: &kept)
    generation += 1
    return kept[0]
  }
}
