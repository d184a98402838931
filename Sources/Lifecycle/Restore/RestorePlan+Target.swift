internal import SystemIO

extension RestorePlan {
  /// Refuses another directory than the plan was made for: what was planned for one must not be done to
  /// another.
  func requirePlanned(_ root: borrowing Directory) throws {
    guard let planned = place.identity, try root.status().identity != planned else { return }
    throw LifecycleError(
      .failed,
      "cannot restore to '\(root.path)': another directory has taken its place since the restore was "
        + "planned", hint: "run the restore again")
  }
}
