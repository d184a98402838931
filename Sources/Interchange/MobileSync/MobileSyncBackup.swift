package import Codecs
package import SystemIO

/// A backup of iTunes or the Finder: a directory with property lists, a manifest, and the contents
/// of files under hashed names. (docs/formats-itunes.md)
package struct MobileSyncBackup: ~Copyable {
  let directory: Directory
  /// The path for messages.
  package let path: ByteString
  /// The description of the device.
  package let device: MobileSyncDevice
  /// Whether the contents are encrypted with a password.
  package let isEncrypted: Bool
  /// The keys of an encrypted backup.
  let keys: ClassKeys?
  /// The wrapped key of Manifest.db; nil if that is not encrypted.
  let manifestKey: [UInt8]?
  /// The state in which the backup was opened.
  let marks: MobileSyncMarks
  /// Faults of the backup as a whole.
  private(set) var remarks = SkippedEntries()

  static let action = "read the backup"
  static let database: ByteString = "Manifest.db"
  /// The list that marks a backup as complete.
  static let status: ByteString = "Status.plist"
  static let records: ByteString = "Manifest.mbdb"

  /// The limits of the property lists in bytes. Info.plist contains the icons of all apps.
  private static let listLimit = 128 << 20

  /// Opens a backup.
  ///
  /// - Parameter password: The password of an encrypted backup; not needed for others.
  /// - Throws: `unknownFormat` if the directory is not a backup, `keyRequired` and `wrongKey` for
  ///   an encrypted one, `limitExceeded` for a keybag that would take minutes to open.
  package init(
    path: ByteString, password: BackupPassword? = nil
  ) throws(InterchangeError) {
    let path = try Self.system(path) { () throws(SystemError) in try Host.realPath(path) }
    let directory = try Self.system(path) { () throws(SystemError) in
      try Directory.open(resolved: path)
    }
    let marks = MobileSyncMarks(in: directory)
    var remarks = SkippedEntries()
    guard let manifest = try Self.list("Manifest.plist", in: directory, path) else {
      throw InterchangeError(
        .unknownFormat, Self.action, subject: path, reason: "it has no Manifest.plist",
        hint: "name the directory of one backup, which contains Manifest.plist")
    }
    let info = Self.optionalList("Info.plist", in: directory, at: path, addingTo: &remarks)
    let status = Self.optionalList("Status.plist", in: directory, at: path, addingTo: &remarks)
    let properties = MobileSyncProperties(manifest: manifest, info: info, status: status)
    if let state = properties.snapshotState, state != "finished" {
      remarks.append(
        path: "Status.plist",
        reason: "the backup was not finished (its state is '\(state)'), so files may be missing")
    }
    keys = try Self.unlock(properties, password: password, path)
    (device, isEncrypted) = (properties.device, properties.isEncrypted)
    manifestKey = properties.manifestKey
    self.directory = directory
    self.marks = marks
    (self.path, self.remarks) = (path, remarks)
  }

  /// Reads a property list that is not needed to read the files.
  private static func optionalList(
    _ name: ByteString, in directory: borrowing Directory, at path: ByteString,
    addingTo remarks: inout SkippedEntries
  ) -> PropertyList? {
    do throws(InterchangeError) { return try list(name, in: directory, path) } catch {
      remarks.append(path: name, reason: error.reason, isPropertyOnly: true)
      return nil
    }
  }

  /// Reads a property list, or returns nil if it is absent.
  private static func list(
    _ name: ByteString, in directory: borrowing Directory, _ path: ByteString
  ) throws(InterchangeError) -> PropertyList? {
    let subject = path.appending(name)
    let bytes: [UInt8]?
    do throws(SystemError) {
      guard try directory.statusIfPresent(name)?.kind == .file else { return nil }
      bytes = try directory.file(name).readAll(limit: listLimit)
    } catch { throw InterchangeError(error, action, subject: subject) }
    guard let bytes else {
      throw InterchangeError(
        .limitExceeded, action, subject: subject, reason: "it has more than \(listLimit) bytes")
    }
    do throws(CodecError) {
      return try PropertyList(reading: bytes, limits: .init(bytes: listLimit))
    } catch { throw InterchangeError(error, action, subject: subject) }
  }

  /// Returns the keys of the protection classes; nil for a plain backup.
  private static func unlock(
    _ properties: MobileSyncProperties, password: BackupPassword?, _ path: ByteString
  ) throws(InterchangeError) -> ClassKeys? {
    guard properties.isEncrypted else { return nil }
    guard let bytes = properties.keybag else {
      throw InterchangeError(
        .damaged, action, subject: path.appending("Manifest.plist"),
        reason: "the backup is encrypted, but its keybag is missing")
    }
    guard let password else {
      throw InterchangeError(
        .keyRequired, action, subject: path, reason: "it is encrypted, and no password was given",
        hint: "give the password that was set in iTunes or the Finder")
    }
    let keybag: Keybag
    do throws(KeybagError) { keybag = try Keybag(bytes) } catch {
      var kind = InterchangeError.Kind.damaged
      if case .limit = error { kind = .limitExceeded }
      throw InterchangeError(
        kind, action, subject: path.appending("Manifest.plist"), reason: error.reason)
    }
    guard let keys = keybag.unlock(password: password.bytes) else {
      throw InterchangeError(
        .wrongKey, action, subject: path, reason: "the password does not open its keybag",
        hint: "check the password: it is the one that was set in iTunes or the Finder, "
          + "not the passcode of the device")
    }
    return keys
  }

  /// Runs system calls on the backup.
  static func system<Value: ~Copyable>(
    _ subject: ByteString, _ body: () throws(SystemError) -> Value
  ) throws(InterchangeError) -> Value {
    do throws(SystemError) { return try body() } catch {
      throw InterchangeError(error, action, subject: subject)
    }
  }
}

/// The password of a backup of another program, in memory that is wiped.
package final class BackupPassword: Sendable {
  let bytes: SecretBytes

  /// Takes over a password, in UTF-8.
  package init(_ bytes: consuming SecretBytes) { self.bytes = bytes }

  /// Returns a copy of the password in separate memory.
  func copy() -> SecretBytes { bytes.withBytes { SecretBytes(copying: $0) } }
}
