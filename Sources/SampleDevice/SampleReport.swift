/// The result of creating or changing a sample.
package struct SampleReport: Hashable, Sendable {
  /// The number of entries that were created or replaced, including directories and links.
  package var entries = 0
  /// The number of entries that were removed.
  package internal(set) var removed = 0
  /// The total size of the files that were created in bytes, including holes.
  package internal(set) var bytes: UInt64 = 0
  /// The number of exclusion marks that the file system does not support and the sample therefore
  /// lacks.
  package internal(set) var marksExcluded = 0

  /// The notes for the user.
  package var notes: [String] {
    guard marksExcluded > 0 else { return [] }
    return [
      """
      the file system does not support user extended attributes: \(marksExcluded) exclusion marks \
      are omitted, and the entries they would mark count as unmarked
      """
    ]
  }
}
