internal import CFuse
package import SystemIO

extension FuseSession {
  /// The device of FUSE.
  private static let device: ByteString = "/dev/fuse"
  /// The program by which users mount and unmount.
  private static let program: ByteString = "fusermount3"
  private static let others =
    "'sandboxctl restore SNAP:PATH --to DIR' and 'sandboxctl dump SNAP:PATH' need no mount"

  /// Checks that programs can mount file systems on this machine.
  ///
  /// - Throws: `OperationError`, whose hint names the commands that work without a mount.
  package static func requireDriver(_ path: ByteString) throws(OperationError) {
    let result = device.withCharacters { cf_probe($0) }
    if result < 0 {
      let error = SystemError(.open, device, number: -result)
      let reason = error.isMissing ? "FUSE is not available" : "FUSE cannot be used"
      throw OperationError(
        .failed, code: error.code, "mount", subject: path,
        reason: "\(reason): cannot open '\(device)': \(error.reason)", hint: others)
    }
    if Host.userID != 0, !hasProgram {
      throw OperationError(
        .failed, code: .programMissing, "mount", subject: path,
        reason: "the program '\(program)', which users need to mount, was not found",
        hint: "install fuse3; \(others)")
    }
  }

  private static var hasProgram: Bool {
    (Host.environment("PATH")?.bytes ?? []).split(separator: UInt8(ascii: ":")).contains {
      (try? Host.realPath(ByteString($0).appending(program))) != nil
    }
  }

  /// Returns the error of a failed mount.
  static func failure(_ path: ByteString, _ number: Int32) -> OperationError {
    let error = SystemError(.open, path, number: number)
    let isRefused = number == CF_EPERM || number == CF_EACCES
    return OperationError(
      .failed, code: error.code, "mount", subject: path,
      reason: isRefused ? "mounting is not permitted here" : error.reason,
      hint: "for '--allow-other' /etc/fuse.conf needs a line 'user_allow_other'; \(others)")
  }

  /// Unmounts or detaches a file system. Returns false if it is in use.
  ///
  /// - Parameters:
  ///   - path: The path for messages.
  ///   - mounted: A path that leads to it.
  static func unmount(
    _ path: ByteString, at mounted: ByteString, isLazy: Bool
  ) throws -> Bool {
    if Host.userID == 0 {
      let result = mounted.withCharacters { cf_unmount($0, isLazy ? 1 : 0) }
      // It may have been unmounted meanwhile.
      if result == 0 || result == -Int32(CF_EINVAL) || result == -Int32(CF_ENOENT) { return true }
      if result == -Int32(CF_EBUSY) { return false }
      let error = SystemError(.remove, path, number: -result)
      throw OperationError(
        .failed, code: error.code, "unmount", subject: path, reason: error.reason)
    }
    let words = [program, "-u"] + (isLazy ? ["-z"] : []) + ["--", mounted]
    return try ChildProgram.run(words).code == 0
  }

  /// Calls `body` with an array of pointers to strings, which are valid only during the call.
  static func withPointers<Result>(
    _ words: [[UInt8]], _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> Result
  ) -> Result {
    var pointers: [UnsafePointer<CChar>?] = []
    func add(_ rest: ArraySlice<[UInt8]>) -> Result {
      guard let word = rest.first else {
        return pointers.withUnsafeBufferPointer { body($0.baseAddress) }
      }
      return word.withUnsafeBufferPointer { bytes in
        bytes.withMemoryRebound(to: CChar.self) { characters in
          pointers.append(characters.baseAddress)
          return add(rest.dropFirst())
        }
      }
    }
    return add(words[...])
  }
}

extension ByteString {
  /// Calls `body` with the bytes as a string of C.
  func withCharacters<Result>(_ body: (UnsafePointer<CChar>?) -> Result) -> Result {
    (Array(bytes) + [0]).withUnsafeBufferPointer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { body($0.baseAddress) }
    }
  }
}
