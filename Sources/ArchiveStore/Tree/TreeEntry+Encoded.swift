internal import Codecs

extension TreeEntry {
  /// Returns the encoding of the entry in a tree (docs/repository-format.md, "Entry").
  ///
  /// - Throws: `invalid` for an entry that violates the format.
  package func encoded() throws(StoreError) -> [UInt8] {
    if attributes.count > 1 {
      var sorted = self
      sorted.attributes.sort { $0.name < $1.name }
      return try sorted.encodedInOrder()
    }
    return try encodedInOrder()
  }

  private func encodedInOrder() throws(StoreError) -> [UInt8] {
    if let fault { throw .invalid("the entry \(name)", "it has \(fault)") }
    return TreeEntryCoding.encode(self)
  }

  /// Decodes an entry encoded by `encoded()`.
  ///
  /// - Throws: `damaged` for any other bytes.
  package init(encoded bytes: [UInt8]) throws(StoreError) {
    do throws(CodecError) {
      var decoder = CBORDecoder(bytes)
      self = try TreeEntryCoding.decode(&decoder)
      try decoder.finish()
    } catch { throw .codec(error, "an entry outside of a tree") }
  }
}
