internal import ArchiveStore
internal import Codecs
internal import Synchronization
internal import SystemIO

/// This host's key for the snapshots of a repository, in a file of the user's data directory
/// (docs/decisions/0027-signed-snapshots.md). It is created with the first snapshot.
final class HostSigningKey: Sendable {
  private let directory: ByteString?
  private let name: ByteString
  private let known: Mutex<SigningKey?>

  /// The maximum size of the file, in bytes.
  private static let limit = 4096

  /// Reads the key of a repository. One that cannot be read is reported, and nothing is signed.
  init(of repository: Repository, _ console: Console) {
    var directory = Host.dataDirectory.map { $0.appending("sandboxctl/signing") }
    let name = ByteString(repository.id.hex + ".key")
    var key: SigningKey?
    if let path = directory?.appending(name) {
      do {
        key = try Self.read(path, console)
      } catch {
        console.warning(
          "cannot use the signing key '\(path)', so new snapshots are not signed: "
            + Failure(error).message)
        directory = nil
      }
    }
    (self.directory, self.name) = (directory, name)
    known = Mutex(key)
  }

  /// The signer of this host, or nil if it has no key yet.
  var signer: Signer? { known.withLock { $0?.signer } }

  /// Returns the key, which is created if there is none, or nil if it cannot be created.
  func key() -> SigningKey? { try? make() }

  /// Returns the key, which is created if there is none.
  ///
  /// - Throws: `OperationError` without a directory for it; `SystemError`.
  func make() throws -> SigningKey {
    if let key = known.withLock({ $0 }) { return key }
    guard let directory else {
      throw OperationError(
        .failed, code: .environmentMissing,
        "cannot sign snapshots: there is no usable key, and no directory for a new one",
        hint: "set $HOME or $XDG_DATA_HOME, or correct the file that a warning names")
    }
    let key = try Self.create(name, in: directory)
    known.withLock { $0 = key }
    return key
  }

  /// Creates the file. If another process creates it at the same time, its key is returned.
  private static func create(_ name: ByteString, in path: ByteString) throws -> SigningKey {
    Host.disableCoreDumps()
    let key = SigningKey()
    let secret = key.text()
    var text: [UInt8] = []
    defer { text.wipe() }
    text.reserveCapacity(secret.count + 1)
    secret.withBytes { bytes in
      for index in bytes.indices { text.append(bytes[index]) }
    }
    text.append(UInt8(ascii: "\n"))
    let directory = try Directory.make(path: path, permissions: 0o700)
    do {
      try AtomicFile.write(text, as: name, in: directory, permissions: 0o600, replacing: false)
    } catch {
      guard let other = try read(path.appending(name), nil) else { throw error }
      return other
    }
    return key
  }

  /// Reads a file, or returns nil if it does not exist. A file that other users can read is
  /// reported.
  private static func read(_ path: ByteString, _ console: Console?) throws -> SigningKey? {
    do {
      return try key(in: Descriptor.open(path: path), at: path, console)
    } catch let error as SystemError where error.isMissing {
      return nil
    }
  }

  private static func key(
    in file: borrowing Descriptor, at path: ByteString, _ console: Console?
  ) throws -> SigningKey {
    Host.disableCoreDumps()
    if try file.status().permissions & 0o077 != 0 {
      console?.warning(
        "other users may read the signing key '\(path)': run 'chmod 600 \(ShellWord.text(path))'")
    }
    var text = try file.readAll(limit: limit) ?? []
    defer { text.wipe() }
    do throws(SigningError) {
      return try SigningKey(text.span)
    } catch {
      throw OperationError(
        .failed, code: .invalidInput, "read the signing key", subject: path, reason: error.reason,
        hint: "remove the file: a new key is created, whose signer has to be trusted again")
    }
  }
}
