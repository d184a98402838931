public import PolicyEngine
public import SystemIO

/// An entry that an update moved to the trash and that its snapshot does not contain, such as a
/// cache or data removed by `--strict`. A rollback restores it by a rename.
public struct PlannedTrashRestore: Sendable, Hashable {
  /// Its path in the container.
  public let inner: ByteString
  /// Its path in the trash, absolute.
  public let from: ByteString
  public let dataClass: DataClass
  public let totals: EntryTotals
}
