internal import CFuse
internal import Synchronization
internal import SystemIO

/// The file system and the state of its connection to the kernel, which requests refer to.
final class FuseConnection: Sendable {
  let files: SnapshotFileSystem
  /// Whether the kernel checks permissions, and so access lists.
  let checksPermissions: Bool
  /// Whether files need not be opened, which is reported to the kernel once.
  let opensNothing = Atomic<Bool>(false)
  /// Puts content into the kernel's cache; nil until the file system is mounted.
  private let started = Mutex<ContentAhead?>(nil)
  /// The rate at which requests arrive.
  let rate = RequestRate()
  /// Whether the file system was unmounted: no request arrives after that.
  let isUnmounted = Atomic<Bool>(false)
  /// The work for requests that waits for a thread.
  let queue = RequestQueue()
  /// The requests that are being handled.
  let pending = PendingRequests { address in
    fuse_reply_err(fuse_req_t(bitPattern: address), Int32(CF_EINTR))
  }

  init(_ files: SnapshotFileSystem, checksPermissions: Bool) {
    (self.files, self.checksPermissions) = (files, checksPermissions)
  }

  var ahead: ContentAhead? { started.withLock { $0 } }

  func start(_ ahead: ContentAhead) { started.withLock { $0 = ahead } }

  /// Notes that a request was received, and returns its number.
  func didReceive() -> UInt64 {
    rate.didReceive(helpers: ahead?.working ?? 0)
    return pending.newNumber()
  }

  /// Handles a request: `job` answers it, unless the kernel interrupts it because its program is
  /// being ended.
  func handle(_ request: FuseRequest, _ job: @escaping RequestQueue.Job) {
    let number = request.number
    pending.add(number, at: UInt(bitPattern: request.raw), of: cf_requester(request.raw))
    fuse_req_interrupt_func(
      request.raw,
      { raw, data in
        guard let raw, let data else { return }
        let own = Unmanaged<FuseConnection>.fromOpaque(data).takeUnretainedValue()
        own.pending.didInterrupt(UInt(bitPattern: raw))
      }, Unmanaged.passUnretained(self).toOpaque())
    pending.start(number)
    queue.run { [self] in
      // It may have been interrupted while it waited for a thread.
      if pending.contains(number) { job() }
    }
  }

  /// Lets the threads that read ahead end. They do so once the repository has answered.
  func beginStop() {
    ahead?.beginStop()
    files.beginStopSearching()
  }

  /// Whether no thread is working for the connection.
  var isIdle: Bool { pending.isEmpty && (ahead?.working ?? 0) == 0 && !files.isSearching }

  /// Ends all threads of the connection. It must have no requests.
  func stop() {
    ahead?.stop()
    files.stopSearching()
  }
}

extension fuse_lowlevel_ops {
  /// The operations of a read-only file system. All others are refused by the library or, since the
  /// file system is mounted read-only, by the kernel.
  static var readOnly: fuse_lowlevel_ops {
    var operations = fuse_lowlevel_ops()
    operations.`init` = { data, connection in
      guard let data, let connection else { return }
      let own = Unmanaged<FuseConnection>.fromOpaque(data).takeUnretainedValue()
      let opensNothing = cf_choose(connection, own.checksPermissions ? 1 : 0) != 0
      own.opensNothing.store(opensNothing, ordering: .relaxed)
    }
    operations.lookup = { raw, parent, name in
      FuseRequest(raw)?.lookUp(ByteString(name), in: parent)
    }
    operations.forget = { raw, number, references in
      FuseRequest(raw)?.connection.files.forget(number, references: references)
      fuse_reply_none(raw)
    }
    operations.forget_multi = { raw, count, nodes in
      let files = FuseRequest(raw)?.connection.files
      for node in UnsafeBufferPointer(start: nodes, count: count) {
        files?.forget(node.ino, references: node.nlookup)
      }
      fuse_reply_none(raw)
    }
    operations.getattr = { raw, number, _ in FuseRequest(raw)?.getAttributes(number) }
    operations.readlink = { raw, number in FuseRequest(raw)?.readLink(number) }
    operations.getxattr = { raw, number, name, room in
      FuseRequest(raw)?.getAttribute(ByteString(name), number, room: room)
    }
    operations.listxattr = { raw, number, room in
      FuseRequest(raw)?.listAttributes(number, room: room)
    }
    operations.addDirectories()
    operations.addFiles()
    return operations
  }

  private mutating func addDirectories() {
    opendir = { raw, number, _ in FuseRequest(raw)?.openDirectory(number) }
    readdir = { raw, _, room, offset, info in
      FuseRequest(raw)?.readDirectory(cf_handle(info), from: Int64(offset), room: room)
    }
    readdirplus = { raw, _, room, offset, info in
      FuseRequest(raw)?.readEntries(cf_handle(info), from: Int64(offset), room: room)
    }
    releasedir = { raw, _, info in
      guard let request = FuseRequest(raw) else { return }
      request.connection.files.closeDirectory(cf_handle(info))
      request.fail(0)
    }
    statfs = { raw, _ in FuseRequest(raw)?.getSpace() }
  }

  private mutating func addFiles() {
    open = { raw, _, info in
      guard let request = FuseRequest(raw), let info else { return }
      if request.connection.opensNothing.load(ordering: .relaxed) {
        request.fail(Int(CF_ENOSYS))
      } else {
        _ = cf_reply_file(raw, info)
      }
    }
    read = { raw, number, count, offset, _ in
      FuseRequest(raw)?.read(number, from: Int64(offset), count: count)
    }
    lseek = { raw, number, offset, target, _ in
      FuseRequest(raw)?.seek(number, from: Int64(offset), to: target)
    }
  }
}

extension ByteString {
  /// Copies a string of C.
  fileprivate init(_ text: UnsafePointer<CChar>?) {
    guard let text else {
      self = ""
      return
    }
    var count = 0
    while text[count] != 0 { count += 1 }
    self.init(UnsafeBufferPointer(start: text, count: count).lazy.map { UInt8(bitPattern: $0) })
  }
}
