/// What was done to a sample.
public struct SampleReport: Hashable, Sendable {
  /// Entries that were made or made anew, directories and links among them.
  public internal(set) var entries = 0
  /// Entries that were removed.
  public internal(set) var removed = 0
  /// Bytes of the files that were made, as their sizes say; holes count.
  public internal(set) var bytes: UInt64 = 0
  /// Exclusion marks that the file system cannot hold, and that the sample therefore lacks.
  public internal(set) var marksExcluded = 0

  /// What the user should know, a sentence each.
  public var notes: [String] {
    guard marksExcluded > 0 else { return [] }
    return [
      """
      the file system holds no user extended attributes: \(marksExcluded) exclusion marks are left \
      out, and what they mark counts as unmarked
      """
    ]
  }
}
