internal import Codecs
internal import SystemIO

extension LocalStorage {
  /// A file in the lease directory that becomes an object by a rename.
  ///
  /// Not thread-safe. The temporary is addressed by its path from the storage's root, not by a
  /// handle on the lease directory, so that the rename fails if the lease was removed. After a
  /// failed fsync the kernel may have dropped pages and report the next fsync as successful. The
  /// same descriptor is therefore never synced again: the bytes are copied once into a new file,
  /// verified by their hash, and that file is synced.
  final class Writer: ObjectWriter {
    private let storage: LocalStorage
    private let directory: ByteString
    private var name: ByteString
    private var file: Descriptor
    private var size: UInt64 = 0
    private var isPresent = true
    /// Whether the object has its name, by either attempt.
    private var isNamed = false

    init(storage: LocalStorage, directory path: ObjectPath) throws(SystemError) {
      self.storage = storage
      directory = ByteString(joining: path.components)
      name = directory.appending(storage.nextTemporary())
      file = try storage.root.create(name, permissions: 0o600)
    }

    deinit {
      if isPresent { try? storage.root.remove(name) }
    }

    func append(_ bytes: [UInt8]) throws(StoreError) {
      do { try file.write(bytes) } catch { throw storage.failure(error) }
      size += UInt64(bytes.count)
    }

    func commit(as path: ObjectPath, digest: Digest, isReadSoon: Bool) throws(StoreError) {
      do {
        try settle(path)
      } catch {
        guard error.operation == .sync else { throw storage.failure(error) }
        do {
          try makeAgain(digest)
          try settle(path)
        } catch { throw failure(error) }
      }
      if !isReadSoon { file.willNotBeReadSoon() }
    }

    func discard() {
      guard isPresent else { return }
      isPresent = false
      try? storage.root.remove(name)
    }

    /// Returns the error to report: `notDurable` once the object has its name, because it is listed
    /// from then on.
    private func failure(_ error: SystemError) -> StoreError {
      let failure = storage.failure(error)
      guard isNamed else { return failure }
      return StoreError(
        .notDurable, failure.action, subject: failure.subject, reason: failure.reason,
        hint: failure.hint, cause: error)
    }

    /// Syncs the content, renames the file into place, and syncs the directory.
    private func settle(_ path: ObjectPath) throws(SystemError) {
      try file.sync()
      let target = try storage.directory(path.directory)
      try storage.root.rename(name, to: path.name, in: target)
      (isPresent, isNamed) = (false, true)
      try target.sync()
    }

    /// Copies the written bytes into a new temporary, with at most 1 MiB of memory.
    private func makeAgain(_ digest: Digest) throws(SystemError) {
      let next = directory.appending(storage.nextTemporary())
      let copy = try storage.root.create(next, permissions: 0o600)
      discard()
      (name, isPresent) = (next, true)
      guard try self.copy(to: copy) == digest else {
        throw SystemError(.sync, next, number: Self.inputOutputError)
      }
      file = copy
    }

    private func copy(to target: borrowing Descriptor) throws(SystemError) -> Digest {
      var hash = Blake2b()
      var offset: UInt64 = 0
      while offset < size {
        let bytes = try file.read(count: Int(min(size - offset, 1 << 20)), at: offset)
        if bytes.isEmpty { break }
        hash.update(bytes)
        try target.write(bytes)
        offset += UInt64(bytes.count)
      }
      return hash.finish()
    }

    /// EIO: the bytes on disk differ from those that were written.
    private static let inputOutputError: Int32 = 5
  }
}
