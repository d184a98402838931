package import Codecs
internal import SandboxModel
package import SystemIO

extension Survey {
  /// The maximum size of a property list that describes an app or a container, in bytes.
  package static let propertyListLimit = 8 << 20
  /// The maximum size of one of Flatpak's text files, in bytes.
  static let textLimit = 1 << 20

  /// Reads a file of a directory, or returns nil if it is missing and, with a warning, if it cannot
  /// be read or exceeds `limit` bytes. Does not follow links.
  mutating func bytes(
    of name: ByteString, in directory: borrowing Directory, as path: ByteString, limit: Int
  ) -> [UInt8]? {
    do {
      guard let status = try directory.statusIfPresent(name) else { return nil }
      guard status.kind == .file else {
        warn(.unusableFile, at: path, because: "it is not a regular file and was not read")
        return nil
      }
      if let bytes = try directory.fileUntouched(name).readAll(limit: limit) { return bytes }
      warn(
        .unusableFile, at: path,
        because: "it has \(status.size) bytes, more than the limit of \(limit)")
    } catch {
      warn(.unusableFile, at: path, because: "it cannot be read: \(error.reason)")
    }
    return nil
  }

  /// Reads a property list, which must be a dictionary.
  mutating func dictionary(
    _ name: ByteString, in directory: borrowing Directory, as path: ByteString
  ) -> PropertyList? {
    guard
      let bytes = bytes(of: name, in: directory, as: path, limit: Self.propertyListLimit)
    else { return nil }
    if bytes.isEmpty {
      warn(.unusableFile, at: path, because: "it is empty, not a property list")
      return nil
    }
    return dictionary(bytes, as: path)
  }

  /// Parses a property list, which must be a dictionary.
  package mutating func dictionary(_ bytes: [UInt8], as path: ByteString) -> PropertyList? {
    do {
      let value = try PropertyList(reading: bytes, limits: .init(bytes: Self.propertyListLimit))
      if value.dictionaryValue != nil { return value }
      warn(
        .wrongValue, at: path,
        because: "it is a property list of the type \(value.kind), not a dictionary")
    } catch {
      let error = ModelError(reading: error)
      let place = error.place.map { " (\($0))" } ?? ""
      warn(
        .unusableFile, at: path,
        because: "it is not a usable property list\(place): \(error.reason)")
    }
    return nil
  }

  /// Returns a string member of a property list, or nil, with a warning if it has another type.
  mutating func string(
    _ key: String, of list: PropertyList, as path: ByteString
  ) -> ByteString? {
    guard let value = list[key] else { return nil }
    guard let text = value.stringValue else {
      warn(.wrongValue, at: path, because: "\(key) has the type \(value.kind), not string")
      return nil
    }
    return text.isEmpty ? nil : ByteString(text)
  }

  /// Returns a version: a string, or a number, which some builds write instead.
  private mutating func version(
    _ key: String, of list: PropertyList, as path: ByteString
  ) -> ByteString? {
    switch list[key] {
    case .integer(let number): ByteString("\(number)")
    case .unsigned(let number): ByteString("\(number)")
    case .real(let number): ByteString("\(number)")
    default: string(key, of: list, as: path)
    }
  }

  /// Returns an identifier member of a property list, or nil, with a warning if it is invalid.
  mutating func identifier(
    _ key: String, of list: PropertyList, as path: ByteString
  ) -> BundleIdentifier? {
    guard let text = string(key, of: list, as: path) else { return nil }
    guard let fault = BundleIdentifier.fault(of: text) else { return BundleIdentifier(text) }
    warn(
      .unusableName, at: path,
      because: "\(key) is '\(text)', which is not a valid identifier: \(fault)")
    return nil
  }

  /// Reads an Info.plist, or returns nil, with a warning if it is not usable.
  mutating func bundleInfo(in directory: borrowing Directory, as path: ByteString) -> BundleInfo? {
    let file = path.appending("Info.plist")
    guard (try? directory.statusIfPresent("Info.plist")) != .some(nil) else {
      warn(.unusableFile, at: file, because: "it is missing, so the bundle has no identifier")
      return nil
    }
    guard let list = dictionary("Info.plist", in: directory, as: file) else { return nil }
    return bundleInfo(of: list, as: file)
  }

  /// Returns the data in the dictionary of an Info.plist.
  package mutating func bundleInfo(of list: PropertyList, as file: ByteString) -> BundleInfo {
    let identifier = identifier("CFBundleIdentifier", of: list, as: file)
    if identifier == nil, list["CFBundleIdentifier"] == nil {
      warn(.wrongValue, at: file, because: "it has no CFBundleIdentifier")
    }
    return BundleInfo(
      identifier: identifier,
      displayName: string("CFBundleDisplayName", of: list, as: file)
        ?? string("CFBundleName", of: list, as: file),
      version: version("CFBundleShortVersionString", of: list, as: file),
      build: version("CFBundleVersion", of: list, as: file),
      executable: string("CFBundleExecutable", of: list, as: file))
  }
}
