internal import CLinux
internal import Glibc

/// The machine, the user, clocks and random numbers.
package enum Host {
  /// Returns the time of the real-time clock in nanosecond resolution.
  package static func now() -> Timestamp {
    var time = timespec()
    _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: UInt32(time.tv_nsec))
  }

  /// Returns the seconds of the monotonic clock, for measuring durations.
  package static func monotonicSeconds() -> Double {
    var time = timespec()
    _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1_000_000_000
  }

  /// Suspends the current thread.
  package static func pause(seconds: Double) {
    if seconds > 0 { cl_pause(Int64(seconds * 1_000_000_000)) }
  }

  /// The host name (`uname(2)`).
  package static var name: String {
    var names = utsname()
    guard unsafe uname(&names) == 0 else { return "localhost" }
    return unsafe withUnsafeBytes(of: &names.nodename) {
      unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
    }
  }

  /// The machine ID from `/etc/machine-id`, or nil if there is none.
  package static var machineID: String? {
    guard let file = try? Descriptor.open(path: "/etc/machine-id"),
      let bytes = try? file.readAll(limit: 4096)
    else { return nil }
    let id = bytes.prefix { $0 != UInt8(ascii: "\n") }
    return id.isEmpty ? nil : String(decoding: id, as: UTF8.self)
  }

  /// The boot ID of the running kernel, or nil if it is not available.
  package static var bootID: String? {
    guard let file = try? Descriptor.open(path: "/proc/sys/kernel/random/boot_id"),
      let bytes = try? file.readAll(limit: 4096), bytes.count >= 36
    else { return nil }
    return String(decoding: bytes.prefix(36), as: UTF8.self)
  }

  /// The effective user ID.
  package static var userID: UInt32 { geteuid() }

  /// The effective group ID.
  package static var groupID: UInt32 { getegid() }

  /// Returns the name of a user, or nil if the ID is unknown.
  package static func userName(_ id: UInt32) -> String? {
    var entry = unsafe passwd()
    var found = unsafe UnsafeMutablePointer<passwd>?.none
    var buffer = [CChar](repeating: 0, count: 16 * 1024)
    guard unsafe getpwuid_r(id, &entry, &buffer, buffer.count, &found) == 0, unsafe found != nil
    else { return nil }
    return unsafe String(cString: entry.pw_name)
  }

  /// Returns the name of a group, or nil if the ID is unknown.
  package static func groupName(_ id: UInt32) -> String? {
    var entry = unsafe group()
    var found = unsafe UnsafeMutablePointer<group>?.none
    var buffer = [CChar](repeating: 0, count: 64 * 1024)
    guard unsafe getgrgid_r(id, &entry, &buffer, buffer.count, &found) == 0, unsafe found != nil
    else { return nil }
    return unsafe String(cString: entry.gr_name)
  }

  /// Returns the value of an environment variable, or nil if it is unset or empty.
  package static func environment(_ name: String) -> ByteString? {
    guard let value = unsafe getenv(name) else { return nil }
    let bytes = unsafe ByteString(
      UnsafeBufferPointer(start: value, count: strlen(value)).map { UInt8(bitPattern: $0) })
    return bytes.isEmpty ? nil : bytes
  }

  /// The user's cache directory: `$XDG_CACHE_HOME` or `~/.cache`; nil if neither is an absolute
  /// path.
  package static var cacheDirectory: ByteString? { baseDirectory("XDG_CACHE_HOME", ".cache") }

  /// The user's configuration directory: `$XDG_CONFIG_HOME` or `~/.config`; nil if neither is an
  /// absolute path.
  package static var configurationDirectory: ByteString? {
    baseDirectory("XDG_CONFIG_HOME", ".config")
  }

  /// The user's data directory: `$XDG_DATA_HOME` or `~/.local/share`; nil if neither is an absolute
  /// path.
  package static var dataDirectory: ByteString? { baseDirectory("XDG_DATA_HOME", ".local/share") }

  /// Returns a directory of the XDG Base Directory Specification 0.8, which ignores relative paths.
  private static func baseDirectory(_ variable: String, _ standard: ByteString) -> ByteString? {
    if let named = environment(variable), named.isAbsolute { return named }
    guard let home = environment("HOME"), home.isAbsolute else { return nil }
    return home.appending(standard)
  }

  /// Returns the working directory.
  package static func workingDirectory() -> ByteString? {
    var buffer = [UInt8](repeating: 0, count: 64 * 1024)
    let found = unsafe buffer.withUnsafeMutableBytes {
      guard let first = $0.baseAddress else { return false }
      return unsafe getcwd(first.assumingMemoryBound(to: CChar.self), $0.count) != nil
    }
    return found ? ByteString(buffer.prefix { $0 != 0 }) : nil
  }

  /// Returns the absolute path of an existing file, without symbolic links, `.` and `..`.
  package static func realPath(_ path: ByteString) throws(SystemError) -> ByteString {
    guard let real = unsafe path.withCString({ unsafe realpath($0, nil) }) else {
      throw SystemError(.status, path, number: errno)
    }
    defer { unsafe free(real) }
    return unsafe ByteString(
      UnsafeBufferPointer(start: real, count: strlen(real)).map { UInt8(bitPattern: $0) })
  }

  /// Returns the mount point of the volume that holds `path`, or the path itself if it is unknown.
  package static func mountPoint(of path: ByteString) -> ByteString {
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

  /// Returns the path unchanged if no component is a symbolic link, so that messages name what the
  /// user typed; otherwise with links resolved.
  package static func linkFree(_ path: ByteString) -> ByteString {
    do throws(SystemError) {
      _ = try Directory.open(resolved: path)
      return path
    } catch { return error.number == ELOOP ? resolved(path) : path }
  }

  /// Returns the path with symbolic links resolved in the part of it that exists.
  package static func resolved(_ path: ByteString) -> ByteString {
    if let real = try? realPath(path) { return real }
    guard let name = path.lastComponent else { return path }
    let parent = path.parent
    return resolved(parent.isEmpty ? "." : parent).appending(name)
  }

  /// Returns the absolute path of the running program: as it was called, directly or through
  /// `PATH`, so that a link to the current version stays a link. If that is not the running
  /// program, returns its resolved path.
  package static func programPath() throws(SystemError) -> ByteString {
    let running = try realPath("/proc/self/exe")
    guard let first = unsafe CommandLine.unsafeArgv[0] else { return running }
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

  /// Returns random bytes from the kernel.
  package static func random(count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var filled = 0
    while filled < count {
      let more = unsafe bytes.withUnsafeMutableBytes {
        unsafe cl_random($0.baseAddress?.advanced(by: filled), count - filled)
      }
      // getrandom(2) fails only on a kernel without it or with a bad address.
      precondition(more > 0, "the kernel returned no random bytes")
      filled += more
    }
    return bytes
  }

  /// Returns random bytes as hexadecimal digits, two for each byte.
  package static func randomHex(bytes count: Int) -> String {
    random(count: count).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  /// The number of processors available to this process.
  package static var processors: Int { max(1, cl_processors()) }
}
