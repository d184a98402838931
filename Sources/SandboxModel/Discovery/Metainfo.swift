internal import SystemIO

/// AppStream metainfo, of which only the newest release is looked for.
enum Metainfo {
  /// The version of the first release that the file lists, which by AppStream's rule is the newest.
  static func newestRelease(in bytes: [UInt8]) -> ByteString? {
    guard let text = String(validating: bytes, as: UTF8.self),
      let list = text.firstRange(of: "<releases"),
      let release = text[list.upperBound...].firstRange(of: "<release ")
    else { return nil }
    let tag = text[release.upperBound...].prefix { $0 != ">" }
    guard let name = tag.firstRange(of: "version=") else { return nil }
    let value = tag[name.upperBound...]
    guard let quote = value.first, quote == "\"" || quote == "'" else { return nil }
    let version = value.dropFirst().prefix { $0 != quote }
    return version.isEmpty ? nil : ByteString(String(version))
  }
}
