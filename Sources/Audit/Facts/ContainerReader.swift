internal import Codecs
internal import DeviceDiscovery
internal import SandboxModel
internal import SystemIO

/// Reads single files of a scanned container, by handles that start at its root: no link is
/// followed, and no access time changes.
struct ContainerReader: ~Copyable {
  private var cursor: DirectoryCursor

  init(_ container: Container) throws(SystemError) {
    cursor = DirectoryCursor(root: try Directory.open(resolved: container.absolutePath))
  }

  /// Returns the first bytes of a regular file, at most `count`; empty for an entry of another
  /// type.
  mutating func head(_ path: ByteString, count: Int) throws(SystemError) -> [UInt8] {
    guard let name = path.lastComponent else { return [] }
    return try cursor.withDirectory(at: path.parent.components) { directory throws(SystemError) in
      guard try directory.statusIfPresent(name)?.kind == .file else { return [] }
      return try directory.fileUntouched(name).read(count: count, at: 0)
    }
  }

  /// Opens a regular file, or returns nil for an entry of another type.
  mutating func file(_ path: ByteString) throws(SystemError) -> Descriptor? {
    guard let name = path.lastComponent else { return nil }
    return try cursor.withDirectory(at: path.parent.components) { directory throws(SystemError) in
      guard try directory.statusIfPresent(name)?.kind == .file else { return nil }
      return try directory.fileUntouched(name)
    }
  }

  /// Returns the property list in a file, which must be a dictionary.
  ///
  /// - Throws: `UnusableList` with the reason.
  mutating func dictionary(_ path: ByteString) throws(UnusableList) -> PropertyList {
    let limit = Survey.propertyListLimit
    let value: PropertyList
    do {
      guard let bytes = try content(path, limit: limit) else {
        throw UnusableList("it has more than \(limit) bytes or is not a regular file")
      }
      value = try PropertyList(reading: bytes, limits: .init(bytes: limit))
    } catch let error as SystemError {
      throw UnusableList("it cannot be read: \(error.reason)")
    } catch let error as CodecError {
      throw UnusableList("it is not a usable property list: \(ByteString(error.reason))")
    } catch let error as UnusableList {
      throw error
    } catch {
      throw UnusableList("\(error)")
    }
    guard value.dictionaryValue != nil else {
      throw UnusableList("it is a property list of the type \(value.kind), not a dictionary")
    }
    return value
  }

  private mutating func content(_ path: ByteString, limit: Int) throws(SystemError) -> [UInt8]? {
    guard let name = path.lastComponent else { return nil }
    return try cursor.withDirectory(at: path.parent.components) { directory throws(SystemError) in
      guard try directory.statusIfPresent(name)?.kind == .file else { return nil }
      return try directory.fileUntouched(name).readAll(limit: limit)
    }
  }
}

/// The reason why a property list cannot be examined.
struct UnusableList: Error {
  /// A clause without its subject.
  let reason: String

  init(_ reason: String) { self.reason = reason }
}
