/// Makes zip archives byte by byte, so that any part can be wrong.
struct ZipBuilder {
  /// An entry; nil means the correct value.
  struct Entry {
    var name: [UInt8]
    var content: [UInt8]
    /// The Unix mode; 0 for an MS-DOS archive.
    var mode: UInt32 = 0o100644
    var flags: UInt16 = 0
    var method: UInt16 = 0
    var localName: [UInt8]?
    var localSize: UInt32?
    var localMethod: UInt16?
    var checksum: UInt32?
    /// The size declared in both headers.
    var size: UInt32?
    /// The offset of another entry whose data this entry refers to.
    var offset: UInt32?

    init(_ name: String, _ content: [UInt8] = [], mode: UInt32 = 0o100644) {
      self.name = Array(name.utf8)
      self.content = content
      self.mode = mode
    }
  }

  var entries: [Entry] = []
  var comment: [UInt8] = []

  init(_ entries: [Entry] = []) { self.entries = entries }

  /// Returns an Info.plist of an app or an extension.
  static func info(_ identifier: String, _ more: [String: String] = [:]) -> [UInt8] {
    let all = ["CFBundleIdentifier": identifier].merging(more) { $1 }
    let members = all.sorted { $0.key < $1.key }
      .map { "<key>\($0.key)</key><string>\($0.value)</string>" }.joined()
    return Array(
      "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict>\(members)</dict></plist>".utf8)
  }

  /// Returns an .ipa with a small app.
  static func app(_ more: [Entry] = []) -> ZipBuilder {
    ZipBuilder(
      [
        Entry("Payload/", mode: 0o040755), Entry("Payload/X.app/", mode: 0o040755),
        Entry(
          "Payload/X.app/Info.plist",
          info(
            "com.example.x",
            [
              "CFBundleShortVersionString": "2.1", "CFBundleVersion": "42",
              "CFBundleExecutable": "X", "CFBundleName": "Ex",
            ])),
      ] + more)
  }

  func bytes() -> [UInt8] {
    var (body, directory): ([UInt8], [UInt8]) = ([], [])
    for entry in entries {
      let location = UInt32(body.count)
      let sum = entry.checksum ?? Self.checksum(of: entry.content)
      let size = entry.size ?? UInt32(entry.content.count)
      let packed = UInt32(entry.content.count)
      let common: (UInt16, UInt32) -> [UInt8] = { method, size in
        Self.number(entry.flags, 2) + Self.number(method, 2) + Self.number(0x6000, 2)
          + Self.number(0x5a21, 2) + Self.number(sum, 4) + Self.number(packed, 4)
          + Self.number(size, 4)
      }
      let name = entry.localName ?? entry.name
      body += Self.number(0x0403_4b50, 4) + Self.number(20, 2)
      body += common(entry.localMethod ?? entry.method, entry.localSize ?? size)
      body += Self.number(name.count, 2) + Self.number(0, 2) + name + entry.content
      directory += Self.number(0x0201_4b50, 4) + Self.number(entry.mode == 0 ? 20 : 0x0314, 2)
      directory += Self.number(20, 2) + common(entry.method, size)
      directory += Self.number(entry.name.count, 2) + Self.number(0, 2) + Self.number(0, 2)
      directory += Self.number(0, 2) + Self.number(0, 2) + Self.number(entry.mode << 16, 4)
      directory += Self.number(entry.offset ?? location, 4) + entry.name
    }
    return body + directory + end(body.count, directory.count)
  }

  private func end(_ offset: Int, _ size: Int) -> [UInt8] {
    Self.number(0x0605_4b50, 4) + Self.number(0, 4) + Self.number(entries.count, 2)
      + Self.number(entries.count, 2) + Self.number(size, 4) + Self.number(offset, 4)
      + Self.number(comment.count, 2) + comment
  }

  static func number(_ value: some BinaryInteger, _ size: Int) -> [UInt8] {
    (0..<size).map { UInt8(truncatingIfNeeded: UInt64(value) >> UInt64(8 * $0)) }
  }

  /// Returns the CRC-32, computed bit by bit.
  static func checksum(of bytes: [UInt8]) -> UInt32 {
    ~bytes.reduce(UInt32.max) { sum, byte in
      (0..<8).reduce(sum ^ UInt32(byte)) { sum, _ in
        sum & 1 == 1 ? sum >> 1 ^ 0xedb8_8320 : sum >> 1
      }
    }
  }
}
