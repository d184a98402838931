public import SystemIO

/// The contents of hard-linked files, which count once in totals: at most one for each entry in the
/// distinct trees, however often a snapshot refers to these trees.
public struct LinkedContents: Sendable {
  /// The content at the first name of each file.
  private var first: [ByteString: Content] = [:]

  /// Creates an empty set.
  public init() {}

  /// Whether no earlier name of the file had this content. A name with other content is restored as
  /// a separate file.
  ///
  /// - Parameter group: the entry's `linkGroup`; nil for a file with one name.
  public mutating func isFirstName(of content: Content, in group: ByteString?) -> Bool {
    guard let group else { return true }
    guard let known = first[group] else {
      first[group] = content
      return true
    }
    return known != content
  }
}
