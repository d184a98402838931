internal import Codecs
internal import SystemIO

extension WritingSession {
  /// Stores a folder of ready entries, in any order, and gives its name. The same entries give the
  /// same name on every host.
  ///
  /// - Throws: `invalid` for two entries of one name, and for one that the format does not allow.
  public func storeTree(_ entries: [TreeEntry]) throws(StoreError) -> TreeReference {
    try work { () throws(StoreError) in
      try lease.keepAlive()
      let sorted = Self.sorted(entries)
      let encoded = try Self.encode(sorted)
      let pages = TreeCoding.pages(of: sorted.map(\.name), encoded)
      var table: [TreePage] = []
      for page in pages {
        let digest = try store(TreeCoding.encodePage(encoded[page]), kind: .tree).digest
        if let last = sorted[page].last { table.append(TreePage(last: last.name, digest: digest)) }
        if pages.count == 1 { return TreeReference(digest) }
      }
      return TreeReference(try store(TreeCoding.encodeTable(table), kind: .tree).digest)
    }
  }

  private static func sorted(_ entries: [TreeEntry]) -> [TreeEntry] {
    let sorted =
      zip(entries, entries.dropFirst()).allSatisfy { $0.name < $1.name }
      ? entries : entries.sorted { $0.name < $1.name }
    return sorted.map { entry in
      guard entry.attributes.count > 1 else { return entry }
      var entry = entry
      entry.attributes.sort { $0.name < $1.name }
      return entry
    }
  }

  private static func encode(_ sorted: [TreeEntry]) throws(StoreError) -> [[UInt8]] {
    var encoded: [[UInt8]] = []
    encoded.reserveCapacity(sorted.count)
    var last: ByteString?
    for entry in sorted {
      if let fault = entry.fault {
        throw .invalid("the entry \(entry.name)", "it has \(fault)")
      }
      if entry.name == last { throw .invalid("the entry \(entry.name)", "its name comes twice") }
      last = entry.name
      encoded.append(TreeEntryCoding.encode(entry))
    }
    return encoded
  }
}
