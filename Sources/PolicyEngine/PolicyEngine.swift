/// Says of every path in a sandbox what the data is and what becomes of it.
///
/// A policy is a YAML file of rules. Files are layered (`PolicyLibrary`), checked, and compiled
/// once for a layout and an OS version (`CompiledPolicy`): the patterns become an automaton over
/// path components. A walk carries a `Classifier.State` down the tree, so that an entry costs the
/// bytes of its own name. Two verdicts come out: what this program keeps, and what the platform
/// itself does. `CompiledPolicy.explain` says which rules and marks led to them.
///
/// The module is pure: it opens no file, asks no clock, and gives the same answer to the same
/// question. What it does not do: it never learns whether a path exists, and it looks for no mark
/// itself; the caller names the marks, the type, the size and the time that it found. A classifier
/// belongs to one thread, and so do the states it gives out.
public enum PolicyFormat {
  /// The version of the policy files' grammar that this module reads, the files' `schema:`.
  public static let schemaVersion = 1
}
