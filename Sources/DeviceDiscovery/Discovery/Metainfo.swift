internal import SystemIO

/// Reads AppStream metainfo, only for the newest release.
enum Metainfo {
  /// Returns the version of the first release in the file, which is the newest one according to
  /// AppStream.
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
