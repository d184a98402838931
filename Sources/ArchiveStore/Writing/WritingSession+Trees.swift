internal import Codecs
internal import SystemIO

extension WritingSession {
  /// Stores a directory of complete entries, in any order, and returns its reference. The same
  /// entries have the same reference on every host. Safe to call from any thread.
  ///
  /// - Throws: `invalid` for two entries of the same name, and for an invalid entry.
  package func storeTree(_ entries: [TreeEntry]) throws(StoreError) -> TreeReference {
    try storeTree(EncodedDirectory(entries))
  }

  /// Stores a directory of encoded entries and returns its reference. Safe to call from any thread.
  package func storeTree(_ directory: EncodedDirectory) throws(StoreError) -> TreeReference {
    try status.step { () throws(StoreError) in
      try lease.keepAlive()
      let pages = TreeCoding.pages(of: directory)
      var table: [TreePage] = []
      for page in pages {
        let bytes = TreeCoding.encodePage(page.lazy.map { directory.entry($0) })
        let digest = try store(bytes, kind: .tree)
        if pages.count == 1 { return TreeReference(digest) }
        table.append(TreePage(last: directory.name(page.upperBound - 1), digest: digest))
      }
      return TreeReference(try store(TreeCoding.encodeTable(table), kind: .tree))
    }
  }

  /// Stores a list of a large file's pieces.
  func storeList(level: UInt8, pieces: [Piece]) throws(StoreError) -> Digest {
    try store(ContentCoding.encodeList(level: level, pieces: pieces), kind: .list)
  }

  /// Stores a tree or a list unless it is known, and returns its digest.
  func store(_ bytes: [UInt8], kind: BlobKind) throws(StoreError) -> Digest {
    let id = BlobID(kind: kind, digest: Blake2b.hash(bytes))
    guard known.claim(id, length: bytes.count) else { return id.digest }
    let path = Self.treeMembers.appending(ByteString(id.digest.hex))
    let blob = PackFrame.Blob(id: id, offset: 0, length: bytes.count)
    try status.mustStep { () throws(StoreError) in
      try trees.append(
        TarMember(path: Array(path.bytes), size: bytes.count), bytes: bytes, blob: blob)
    }
    return id.digest
  }

  private static let treeMembers: ByteString = ".sandboxctl/trees"
}
