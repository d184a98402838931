internal import CLinux
internal import Glibc

extension Host {
  /// Returns the working directory.
  public static func workingDirectory() -> ByteString? {
    var buffer = [UInt8](repeating: 0, count: 64 * 1024)
    let found = unsafe buffer.withUnsafeMutableBytes {
      guard let first = $0.baseAddress else { return false }
      return unsafe getcwd(first.assumingMemoryBound(to: CChar.self), $0.count) != nil
    }
    return found ? ByteString(buffer.prefix { $0 != 0 }) : nil
  }

  /// Returns the absolute path of an existing file, without symbolic links, `.` and `..`.
  public static func realPath(_ path: ByteString) throws(SystemError) -> ByteString {
    guard let real = unsafe path.withCString({ unsafe realpath($0, nil) }) else {
      throw SystemError(.status, path, number: errno)
    }
    defer { unsafe free(real) }
    return unsafe ByteString(
      UnsafeBufferPointer(start: real, count: strlen(real)).map { UInt8(bitPattern: $0) })
  }

  /// Returns the mount point of the volume that holds `path`, or the path itself if it is unknown.
  public static func mountPoint(of path: ByteString) -> ByteString {
    guard var point = try? realPath(path), var status = try? Directory.open(path: point).status()
    else { return path }
    while point != "/", !status.isMountPoint {
      let above = point.parent
      // Linux before 5.8 does not report mount points.
      guard let next = try? Directory.open(path: above).status(),
        next.identity.device == status.identity.device
      else { return point }
      (point, status) = (above, next)
    }
    return point
  }

  /// Returns the path unchanged if no component is a symbolic link, so that messages show what the
  /// user typed; otherwise with links resolved.
  public static func linkFree(_ path: ByteString) -> ByteString {
    do throws(SystemError) {
      _ = try Directory.open(resolved: path)
      return path
    } catch { return error.number == ELOOP ? resolved(path) : path }
  }

  /// Returns the path with symbolic links resolved in the part of it that exists.
  public static func resolved(_ path: ByteString) -> ByteString {
    if let real = try? realPath(path) { return real }
    guard let name = path.lastComponent else { return path }
    return resolved(path.dirname).appending(name)
  }

  /// Returns the absolute path of the running program: as it was called, directly or through
  /// `PATH`, so that a link to the current version stays a link. If that is not the running
  /// program, returns its resolved path.
  public static func programPath() throws(SystemError) -> ByteString {
    let running = try realPath("/proc/self/exe")
    guard let first = unsafe cl_argument(0) else { return running }
    let bytes = unsafe UnsafeBufferPointer(start: first, count: strlen(first))
    let called = unsafe ByteString(bytes.map { UInt8(bitPattern: $0) })
    let candidates =
      called.bytes.contains(ByteString.slash)
      ? [called.isAbsolute ? called : workingDirectory()?.appending(called)]
      : (environment("PATH")?.bytes ?? []).split(separator: UInt8(ascii: ":"))
        .map { ByteString($0).appending(called) }
    let isRunning = { (path: ByteString) in path.isAbsolute && (try? realPath(path)) == running }
    return candidates.compactMap { $0 }.first(where: isRunning) ?? running
  }
}
