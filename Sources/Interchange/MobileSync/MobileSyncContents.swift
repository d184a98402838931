internal import Synchronization
internal import SystemIO

/// The contents of a backup by name. They are in directories named by the first two digits, or
/// beside the manifest. The directories stay open. Safe to use from any thread.
final class MobileSyncContents: Sendable {
  private let root: Directory
  /// Whether the contents are usually in directories.
  private let hasDirectories: Bool
  /// The directories, indexed by the number in their name.
  private let directories = Mutex([DirectoryState](repeating: .unknown, count: 256))

  /// The state of a directory of contents.
  private enum DirectoryState {
    case unknown
    case absent
    case open(OpenDirectory)
  }

  private final class OpenDirectory: Sendable {
    let directory: Directory

    init(_ directory: consuming Directory) { self.directory = directory }
  }

  init(in root: consuming Directory, hasDirectories: Bool) {
    self.root = root
    self.hasDirectories = hasDirectories
  }

  /// Opens a content. No link is followed.
  func open(_ name: ByteString) throws(PayloadFault) -> Descriptor {
    do throws(SystemError) {
      if !hasDirectories, let file = try Self.file(name, in: root) { return file }
      if let place = try directory(of: name), let file = try Self.file(name, in: place.directory) {
        return file
      }
      if hasDirectories, let file = try Self.file(name, in: root) { return file }
    } catch { throw PayloadFault(reason: "its content: \(error.reason)", cause: error) }
    throw .missing(name)
  }

  /// Returns the status of a content without opening it.
  func status(_ name: ByteString) throws(PayloadFault) -> FileStatus {
    do throws(SystemError) {
      if !hasDirectories, let status = try root.statusIfPresent(name) { return status }
      if let place = try directory(of: name),
        let status = try place.directory.statusIfPresent(name)
      {
        return status
      }
      if hasDirectories, let status = try root.statusIfPresent(name) { return status }
    } catch { throw PayloadFault(reason: "its content: \(error.reason)", cause: error) }
    throw .missing(name)
  }

  /// Opens a file; nil if it does not exist.
  private static func file(
    _ name: ByteString, in directory: borrowing Directory
  ) throws(SystemError) -> Descriptor? {
    do throws(SystemError) { return try directory.file(name) } catch {
      if error.isMissing { return nil }
      throw error
    }
  }

  /// Returns the directory of the first two digits; nil if it does not exist.
  private func directory(of name: ByteString) throws(SystemError) -> OpenDirectory? {
    let digits = name.bytes.prefix(2)
    guard let number = UInt8(String(decoding: digits, as: UTF8.self), radix: 16) else { return nil }
    return try directories.withLock { places throws(SystemError) in
      switch places[Int(number)] {
      case .open(let directory): return directory
      case .absent: return nil
      case .unknown: break
      }
      do throws(SystemError) {
        let directory = OpenDirectory(try root.directory(ByteString(digits)))
        places[Int(number)] = .open(directory)
        return directory
      } catch {
        guard error.isMissing else { throw error }
        places[Int(number)] = .absent
        return nil
      }
    }
  }
}

extension PayloadFault {
  /// The fault of a content that is not in the backup.
  fileprivate static func missing(_ name: ByteString) -> PayloadFault {
    PayloadFault(reason: "its content \(name) is missing in the backup")
  }
}
