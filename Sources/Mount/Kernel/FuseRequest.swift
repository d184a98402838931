internal import CFuse
internal import SystemIO

/// A request of the kernel, which is answered exactly once.
struct FuseRequest: @unchecked Sendable {
  // Unchecked: the library permits a thread other than the one that received a request to answer
  // it, and `claim` returns true to one thread only.
  let raw: fuse_req_t
  let connection: FuseConnection
  /// Identifies the request, because `raw` may belong to a later one once it is answered.
  let number: UInt64

  init?(_ raw: fuse_req_t?) {
    guard let raw, let data = fuse_req_userdata(raw) else { return nil }
    self.raw = raw
    connection = Unmanaged<FuseConnection>.fromOpaque(data).takeUnretainedValue()
    number = connection.didReceive()
  }

  private var files: SnapshotFileSystem { connection.files }

  /// Answers a request for which no work was begun with an error number, 0 for success.
  func fail(_ number: Int) { fuse_reply_err(raw, Int32(number)) }

  /// Runs `body`, which answers, and answers with its error if it throws. Another thread may do
  /// this later.
  private func answering(_ body: @escaping @Sendable () throws(FileSystemError) -> Void) {
    connection.handle(self) {
      do throws(FileSystemError) { try body() } catch {
        _ = send { fuse_reply_err($0, error.number) }
      }
    }
  }

  /// Answers, unless the request was answered because it was interrupted. Returns whether the
  /// kernel has the answer.
  private func send(_ answer: (fuse_req_t) -> Int32) -> Bool {
    // Otherwise, the library may have released the request.
    guard connection.pending.claim(number) else { return false }
    return answer(raw) == 0
  }

  // MARK: - Nodes

  func lookUp(_ name: ByteString, in parent: UInt64) {
    answering { () throws(FileSystemError) in
      let attributes = try files.lookUp(name, in: parent)
      var answer = cf_attributes(attributes)
      let isSent = send { cf_reply_entry($0, &answer, attributes.nameSeconds, attributes.seconds) }
      // The kernel did not receive the reference, for example because the request was interrupted.
      if !isSent { files.forget(attributes.number, references: 1) }
    }
  }

  func getAttributes(_ number: UInt64) {
    answering { () throws(FileSystemError) in
      let attributes = try files.attributes(of: number)
      var answer = cf_attributes(attributes)
      _ = send { cf_reply_attributes($0, &answer, attributes.seconds) }
    }
  }

  func readLink(_ number: UInt64) {
    answering { () throws(FileSystemError) in
      let target = Array(try files.target(of: number).bytes) + [0]
      target.withUnsafeBufferPointer { bytes in
        bytes.withMemoryRebound(to: CChar.self) { text in
          _ = send { fuse_reply_readlink($0, text.baseAddress) }
        }
      }
    }
  }

  func getAttribute(_ name: ByteString, _ number: UInt64, room: Int) {
    if files.hasNoAttributes { return fail(Int(CF_ENOSYS)) }
    answering { () throws(FileSystemError) in
      reply(try files.value(of: name, of: number), room: room)
    }
  }

  /// If there are no attributes at all, the kernel does not ask again after the answer ENOSYS, and
  /// tells programs that the file system does not support them.
  func listAttributes(_ number: UInt64, room: Int) {
    if files.hasNoAttributes { return fail(Int(CF_ENOSYS)) }
    answering { () throws(FileSystemError) in
      reply(try files.attributeNames(of: number).flatMap { $0.bytes + [0] }, room: room)
      connection.ahead?.didListAttributes(of: number)
    }
  }

  /// Answers with the size of a value if the request has no space for it, otherwise with the value.
  private func reply(_ value: [UInt8], room: Int) {
    _ = send { raw in
      if room == 0 { return fuse_reply_xattr(raw, value.count) }
      if value.count > room { return fuse_reply_err(raw, Int32(CF_ERANGE)) }
      return value.withUnsafeBytes { bytes in
        fuse_reply_buf(raw, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
      }
    }
  }

  /// Answers with the size of the file system.
  func getSpace() {
    answering { () throws(FileSystemError) in
      _ = send { cf_reply_space($0, files.packedBytes, UInt64(files.nodeCount)) }
    }
  }

  // MARK: - Directories

  func openDirectory(_ number: UInt64) {
    answering { () throws(FileSystemError) in
      let (handle, isConstant) = try files.openDirectory(number)
      let isSent = send { cf_reply_directory($0, handle, isConstant ? 1 : 0) }
      if !isSent { files.closeDirectory(handle) }
    }
  }

  /// Answers with names and types. While entries are added, the library does not access the
  /// request, which may be answered meanwhile.
  func readDirectory(_ handle: UInt64, from offset: Int64, room: Int) {
    answering { () throws(FileSystemError) in
      var buffer = [CChar](repeating: 0, count: room)
      var used = 0
      try files.readDirectory(handle, from: offset) { item in
        let size = withName(item.name) { name in
          buffer.withUnsafeMutableBufferPointer { buffer in
            cf_add_name(
              raw, buffer.baseAddress.map { $0 + used }, room - used, name, item.number,
              item.kind.mode, item.next)
          }
        }
        guard size <= room - used else { return false }
        used += size
        return true
      }
      _ = send { fuse_reply_buf($0, buffer, used) }
    }
  }

  /// Answers with entries and their attributes. Each is a reference to its node.
  func readEntries(_ handle: UInt64, from offset: Int64, room: Int) {
    answering { () throws(FileSystemError) in
      connection.ahead?.willList(handle, from: offset)
      var buffer = [CChar](repeating: 0, count: room)
      var used = 0
      var entered: [UInt64] = []
      try files.readDirectory(handle, from: offset) { item in
        withName(item.name) { name in
          guard cf_size_of_entry(raw, name) <= room - used else { return false }
          let attributes = (try? files.enter(item, of: handle)) ?? nil
          if let attributes { entered.append(attributes.number) }
          var answer = attributes.map { cf_attributes($0) } ?? cf_attributes(item)
          buffer.withUnsafeMutableBufferPointer { buffer in
            used += cf_add_entry(
              raw, buffer.baseAddress.map { $0 + used }, room - used, name, &answer,
              attributes == nil ? 0 : 1, attributes?.nameSeconds ?? 0, attributes?.seconds ?? 0,
              item.next)
          }
          return true
        }
      }
      if send({ fuse_reply_buf($0, buffer, used) }) { return }
      for number in entered { files.forget(number, references: 1) }
    }
  }

  private func withName<Result>(
    _ name: ByteString, _ body: (UnsafePointer<CChar>?) -> Result
  ) -> Result {
    (Array(name.bytes) + [0]).withUnsafeBufferPointer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { body($0.baseAddress) }
    }
  }

  // MARK: - Files

  func seek(_ number: UInt64, from offset: Int64, to target: Int32) {
    answering { () throws(FileSystemError) in
      guard offset >= 0 else { throw .noAddress }
      guard target == CF_SEEK_HOLE || target == CF_SEEK_DATA else { throw .invalid }
      let found = try files.seek(number, from: UInt64(offset), toHole: target == CF_SEEK_HOLE)
      _ = send { fuse_reply_lseek($0, Int(found)) }
    }
  }

  func read(_ number: UInt64, from offset: Int64, count: Int) {
    answering { () throws(FileSystemError) in
      guard offset >= 0 else { throw .invalid }
      let parts = try files.read(number, from: UInt64(offset), count: count)
      FuseVectors.send(parts) { vectors, count in
        _ = send { fuse_reply_iov($0, vectors, count) }
      }
      connection.ahead?.didRead(number, from: UInt64(offset), count: count, parts)
    }
  }
}

extension cf_attributes {
  /// The attributes of a node.
  init(_ node: NodeAttributes) {
    self.init(
      number: node.number, size: node.size, blocks: node.blocks, device: node.device,
      seconds: node.modified.seconds, nanoseconds: node.modified.nanoseconds, mode: node.mode,
      links: node.links, user: node.user, group: node.group)
  }

  /// The number and type of an entry, without a reference.
  fileprivate init(_ item: DirectoryItem) {
    self.init()
    number = item.number
    mode = item.kind.mode
  }
}
