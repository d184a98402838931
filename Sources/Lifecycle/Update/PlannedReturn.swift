public import PolicyEngine
public import SystemIO

/// Something that an update put into the trash and its snapshot does not hold, as caches and what was
/// dropped strictly: a rollback brings it back by a rename.
public struct PlannedReturn: Sendable, Hashable {
  /// Its path in the container.
  public let inner: ByteString
  /// Where it lies in the trash, absolute.
  public let from: ByteString
  public let dataClass: DataClass
  public let totals: EntryTotals
}
