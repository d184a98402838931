package import DeviceScan
package import PolicyEngine
package import SystemIO

/// An entry that an update moved to the trash and that its snapshot does not contain, such as a
/// cache or data removed by `--strict`. A rollback restores it by a rename.
package struct PlannedTrashRestore: Sendable, Hashable {
  /// Its path in the container.
  package let inner: ByteString
  /// Its path in the trash, absolute.
  package let from: ByteString
  package let dataClass: DataClass
  package let totals: EntryTotals
}
