/// Determines the data class and the policy decision for every path in a sandbox.
///
/// A policy is a YAML file of rules. Files are layered (`PolicyLibrary`), checked, and compiled
/// once for a layout and an OS version (`CompiledPolicy`): the patterns become an automaton over
/// path components. A walk carries a `Classifier.State` down the tree, so the cost of an entry is
/// proportional to the length of its name. Each entry has two verdicts: what this program keeps,
/// and what the platform itself does. `CompiledPolicy.explain` returns the rules and marks that led
/// to them.
///
/// The module is pure: it opens no files, reads no clock, and answers equal queries equally. It
/// neither checks whether a path exists nor looks for marks itself; the caller provides the marks,
/// the type, the size and the time. A classifier and its states belong to one thread.
package enum PolicyFormat {
  /// The version of the policy grammar that this module reads, `schema:` in the files.
  package static let schemaVersion = 1
}
