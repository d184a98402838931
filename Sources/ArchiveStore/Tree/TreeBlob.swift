internal import Codecs
internal import SystemIO

/// The content of a tree blob: all entries of a directory, or the table of its pages.
enum TreeBlob: Hashable, Sendable {
  case page([TreeEntry])
  case table([TreePage])
}

/// A page in a directory's table.
struct TreePage: Hashable, Sendable {
  /// The name of its last entry.
  let last: ByteString
  let digest: Digest
}
