internal import Synchronization
internal import SystemIO

/// An open file or directory of a connection, closed when it is released.
final class SFTPOpenFile: Sendable {
  let handle: SFTPHandle
  private let core: SFTPConnection.Core

  init(_ handle: SFTPHandle, _ core: SFTPConnection.Core) {
    (self.handle, self.core) = (handle, core)
  }

  // The answer does not matter: written data was synced before.
  deinit { _ = try? core.send(.close(handle), to: nil) }
}

/// The files and directories that a connection keeps open, because many ranges of the same packs
/// are read, and many objects are put into the same directories: each saves a round trip.
///
/// Objects are immutable, so an open file has the content of its name. Files that this program
/// renames or removes are dropped.
final class SFTPOpenFiles: Sendable {
  private let state = Mutex(State())

  private struct State {
    var files: [ByteString: SFTPOpenFile] = [:]
    /// The paths in the order of their use, the latest last.
    var order: [ByteString] = []
  }

  /// The maximum number of files. OpenSSH allows about as many as the server's limit of open files,
  /// which is 1024 by default, less five.
  static let limit = 32

  /// Returns an open file, or nil if it is not kept.
  func find(_ path: ByteString) -> SFTPOpenFile? {
    state.withLock { state in
      guard let found = state.files[path] else { return nil }
      state.order.removeAll { $0 == path }
      state.order.append(path)
      return found
    }
  }

  /// Keeps a file open, and closes the least recently used one if necessary.
  func keep(_ file: SFTPOpenFile, as path: ByteString) {
    // Released after the lock, because that sends a request.
    let dropped = state.withLock { state -> [SFTPOpenFile?] in
      let old = state.files.updateValue(file, forKey: path)
      state.order.removeAll { $0 == path }
      state.order.append(path)
      guard state.order.count > Self.limit else { return [old] }
      return [old, state.files.removeValue(forKey: state.order.removeFirst())]
    }
    withExtendedLifetime(dropped) {}
  }

  /// Drops a file, and everything below it.
  func drop(_ path: ByteString) {
    let dropped = state.withLock { state -> [SFTPOpenFile?] in
      let below = state.order.filter { $0.isWithin(path) }
      state.order.removeAll { $0.isWithin(path) }
      return below.map { state.files.removeValue(forKey: $0) }
    }
    withExtendedLifetime(dropped) {}
  }
}
