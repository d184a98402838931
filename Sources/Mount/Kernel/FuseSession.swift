internal import CFuse
internal import Synchronization
internal import SystemIO

/// A mounted file system.
package final class FuseSession: Sendable {
  private let session: Handle
  private let connection: FuseConnection
  private let path: ByteString
  /// The directory that is mounted on.
  private let covered: Directory
  /// The path by which the file system is unmounted.
  private let mounted: ByteString
  /// The number of threads that receive or handle requests. They end once it is unmounted.
  private let running: Atomic<Int>
  private let threads: Workers

  /// The session of the library.
  private struct Handle: @unchecked Sendable {
    // Unchecked: the library permits several threads to receive and process requests.
    let raw: OpaquePointer
  }

  /// The options of a mount.
  package struct Options: Sendable {
    /// Whether users other than the one who mounts have access to the extent that the permissions
    /// of the files allow.
    package var allowsOthers: Bool
    /// The number of threads that answer requests.
    package var threads: Int

    /// Sets the options.
    package init(
      allowsOthers: Bool = false, threads: Int = min(16, max(4, 2 * Host.processors))
    ) {
      (self.allowsOthers, self.threads) = (allowsOthers, threads)
    }

    /// Whether the kernel checks permissions. Without other users, the user who mounts can read
    /// everything, as with a restore from the same repository.
    fileprivate var checksPermissions: Bool { allowsOthers || Host.userID == 0 }

    fileprivate var words: [ByteString] {
      let access: [ByteString] =
        (allowsOthers ? ["allow_other"] : []) + (checksPermissions ? ["default_permissions"] : [])
      return ["ro", "nosuid", "nodev", "fsname=sandboxctl", "subtype=sandboxctl"] + access
    }
  }

  /// Mounts a file system on a directory and starts to answer requests.
  ///
  /// Root mounts on the directory that was checked and unmounts there, not at its path: another
  /// user may be able to replace a directory in the path by a link. The program by which other
  /// users mount checks the path itself.
  ///
  /// - Throws: `OperationError` if mounting is impossible or not permitted on this machine, or the
  ///   directory was replaced.
  package init(
    _ files: SnapshotFileSystem, on point: MountPoint, _ options: Options = Options()
  ) throws {
    let path = point.path
    try FuseSession.requireDriver(path)
    let covered = try point.open()
    let open = Host.userID == 0 ? try covered.openPath() : nil
    let mounted = open.map { $0.appending("..").appending(path.lastComponent ?? "") } ?? path
    let connection = FuseConnection(files, checksPermissions: options.checksPermissions)
    let session = try Self.newSession(connection, options, for: path)
    self.connection = connection
    self.session = Handle(raw: session)
    self.path = path
    self.mounted = mounted
    self.covered = covered
    let number = (open ?? path).withCharacters { cf_mount(session, $0) }
    guard number == 0 else {
      fuse_session_destroy(session)
      throw Self.failure(path, number)
    }
    // One more thread, which receives while the others wait.
    let count = options.threads + 1
    running = Atomic(count)
    do {
      connection.start(try Self.ahead(files, of: self.session))
      threads = try Workers(count: count, capacity: count, name: "fuse")
    } catch {
      connection.stop()
      _ = try? Self.unmount(path, at: mounted, isLazy: true)
      fuse_session_unmount(session)
      fuse_session_destroy(session)
      throw error
    }
    serve(on: count)
  }

  private static func newSession(
    _ connection: FuseConnection, _ options: Options, for path: ByteString
  ) throws(OperationError) -> OpaquePointer {
    cf_drop_messages()
    var operations = fuse_lowlevel_ops.readOnly
    let words = options.words.map { Array($0.bytes) + [0] }
    let data = Unmanaged.passUnretained(connection).toOpaque()
    let session = FuseSession.withPointers(words) { pointers in
      cf_new_session(pointers, Int32(words.count), &operations, data)
    }
    guard let session else { throw failure(path, Int32(CF_EINVAL)) }
    return session
  }

  /// Returns the object that puts content into the kernel's cache ahead of requests. It continues
  /// if the kernel has forgotten a file.
  private static func ahead(
    _ files: SnapshotFileSystem, of session: Handle
  ) throws -> ContentAhead {
    try ContentAhead(files) { number, offset, bytes in
      let result = cf_put(session.raw, number, offset, bytes.baseAddress, bytes.count)
      return result == 0 || result == -Int32(CF_ENOENT)
    }
  }

  private func serve(on count: Int) {
    for _ in 0..<count {
      threads.submit { [self] in
        var server = FuseServer(session.raw, connection)
        server.run()
        // A thread also ends if it cannot receive, although the others still may.
        let isUnmounted = fuse_session_exited(session.raw) != 0
        let left = running.subtract(1, ordering: .acquiringAndReleasing).newValue
        if isUnmounted || left == 0 { connection.isUnmounted.store(true, ordering: .releasing) }
        StopSignals.wake()
      }
    }
  }

  /// Whether the file system was unmounted, so that nobody waits for an answer.
  package var hasEnded: Bool { connection.isUnmounted.load(ordering: .acquiring) }

  /// Unmounts the file system. If it is in use, it is detached: it no longer has a path, and
  /// programs that use it lose access when this program ends. Returns whether it was in use.
  ///
  /// - Throws: `OperationError` if it can neither be unmounted nor detached.
  package func unmount() throws -> Bool {
    if hasEnded { return false }
    if try Self.unmount(path, at: mounted, isLazy: false) { return false }
    guard try Self.unmount(path, at: mounted, isLazy: true) else {
      throw OperationError(
        .failed, "unmount", subject: path, reason: "it cannot be detached",
        hint: "run 'fusermount3 -u -z \(ShellWord.text(path))'")
    }
    return true
  }

  /// The time in seconds for which `finish` waits for threads.
  private static let patience = 2.0

  /// Closes the connection, unless some of its threads still wait for the repository: they end with
  /// the program. The file system must be unmounted.
  package func finish() {
    connection.beginStop()
    let end = Host.monotonicSeconds() + Self.patience
    while running.load(ordering: .acquiring) > 0 || !connection.isIdle {
      if Host.monotonicSeconds() >= end { return }
      Host.pause(seconds: 0.01)
    }
    threads.finish()
    connection.stop()
    fuse_session_unmount(session.raw)
    fuse_session_destroy(session.raw)
  }
}
