package import Codecs
package import SystemIO

extension SharedReader {
  /// A directory: the entries of its only page, or the table of its pages.
  package struct DirectoryPages: Sendable {
    let directory: RepositoryReader.OpenDirectory

    /// The number of pages.
    package var count: Int { directory.pages }

    /// The entries of the only page, or nil if there are several pages.
    package var onlyPage: [TreeEntry]? {
      if case .page(let entries) = directory.blob { entries } else { nil }
    }

    /// The encoded size of the page or of the table, in bytes.
    package var size: Int { directory.size }

    /// Returns the page that would hold a name, or nil if the name is after the last page.
    package func page(for name: ByteString) -> Int? { directory.page(for: name) }
  }

  /// Opens a directory.
  package func directory(_ tree: TreeReference) throws(StoreError) -> DirectoryPages {
    DirectoryPages(directory: try openDirectory(tree))
  }

  /// Returns the entries of a page of a directory in the order of their names, and its size in
  /// bytes, or 0 for the only page.
  package func page(
    _ number: Int, of pages: DirectoryPages
  ) throws(StoreError) -> (entries: [TreeEntry], size: Int) {
    try pages.directory.page(number) { tree throws(StoreError) in try openDirectory(tree) }
  }

  private func openDirectory(
    _ tree: TreeReference
  ) throws(StoreError) -> RepositoryReader.OpenDirectory {
    let blob = try find(BlobID(kind: .tree, digest: tree.digest))
    return try RepositoryReader.TreeBytes(tree: tree, frame: blob.frame.bytes, range: blob.range)
      .directory()
  }

  /// Reads a list of pieces, which must cover exactly `length` bytes of the file. The pieces of a
  /// level above 0 are lists themselves.
  package func pieces(
    ofList digest: Digest, level: UInt8, length: UInt64
  ) throws(StoreError) -> [Piece] {
    let blob = BlobID(kind: .list, digest: digest)
    return try ContentCoding.decodeList(
      try find(blob).bytes, level: level, length: length, object: "\(blob)")
  }

  /// Reads a data blob of an expected length.
  package func data(_ digest: Digest, length: UInt64) throws(StoreError) -> Slice {
    let slice = try find(BlobID(kind: .data, digest: digest))
    guard slice.count == length else {
      throw .wrongLength(of: digest, slice.count, needed: length)
    }
    return slice
  }

  /// Returns the value of an extended attribute.
  package func value(of attribute: Attribute) throws(StoreError) -> [UInt8] {
    switch attribute.value {
    case .inline(let value): value
    case .blob(let digest, let length): try data(digest, length: length).bytes
    }
  }
}
