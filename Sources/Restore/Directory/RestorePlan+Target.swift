package import SystemIO

extension RestorePlan {
  /// Refuses a directory other than the one that the plan was made for.
  package func requirePlanned(_ root: borrowing Directory) throws {
    guard let planned = place.identity, try root.status().identity != planned else { return }
    throw OperationError(
      .failed,
      "cannot restore to '\(root.path)': another directory has replaced it since the restore was "
        + "planned", hint: "run the restore again")
  }
}
