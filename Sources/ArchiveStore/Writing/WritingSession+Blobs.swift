internal import Codecs
public import SystemIO

extension WritingSession {
  /// Whether a blob need not be stored; counts it if so.
  func isKnown(_ blob: BlobID, length: Int) -> Bool {
    guard packs.blobs.contains(blob) || known.contains(blob) else { return false }
    statistics.knownBlobs += 1
    statistics.knownBytes += UInt64(length)
    return true
  }

  /// Adds a member of file contents with its new blobs.
  func appendData(
    _ member: TarMember, bytes: Span<UInt8>, blobs: [PackFrame.Blob]
  ) throws(StoreError) {
    note(blobs)
    try data.append(member, bytes: bytes, blobs: blobs, into: &packs)
  }

  private func note(_ blobs: [PackFrame.Blob]) {
    for blob in blobs {
      packs.blobs.insert(blob.id, length: blob.length)
      statistics.newBlobs += 1
      statistics.newBytes += UInt64(blob.length)
    }
  }

  /// Stores bytes as one blob, if they are not known, and gives its name.
  ///
  /// - Throws: `invalid` for no bytes or more than 8 MiB.
  public func storeBytes(_ bytes: [UInt8], kind: BlobKind) throws(StoreError) -> BlobID {
    try work { () throws(StoreError) in try store(bytes, kind: kind) }
  }

  func store(_ bytes: [UInt8], kind: BlobKind) throws(StoreError) -> BlobID {
    guard !bytes.isEmpty, bytes.count <= FormatLimit.blob else {
      throw .invalid("a \(kind) blob", "it has \(bytes.count) bytes; 1 byte to 8 MiB can be stored")
    }
    let id = BlobID(kind: kind, digest: Blake2b.hash(bytes))
    if isKnown(id, length: bytes.count) { return id }
    let blob = PackFrame.Blob(id: id, offset: 0, length: bytes.count)
    let folder = kind == .data ? Self.values : Self.treeMembers
    let path = folder.appending(ByteString(id.digest.hex))
    let member = TarMember(path: Array(path.bytes), size: bytes.count)
    if kind == .data {
      try appendData(member, bytes: bytes.span, blobs: [blob])
    } else {
      note([blob])
      try trees.append(member, bytes: bytes.span, blobs: [blob], into: &packs)
    }
    return id
  }

  /// Makes an extended attribute; a value of more than 512 bytes is stored as a blob.
  public func makeAttribute(name: ByteString, value: [UInt8]) throws(StoreError) -> Attribute {
    guard value.count > Attribute.inlineLimit else {
      return Attribute(name: name, value: .inline(value))
    }
    let blob = try storeBytes(value, kind: .data)
    return Attribute(name: name, value: .blob(blob.digest, length: UInt64(value.count)))
  }

  static let values: ByteString = ".sandboxctl/values"
  static let treeMembers: ByteString = ".sandboxctl/trees"
  static let parts: ByteString = ".sandboxctl/parts"
}
