internal import CLinux

/// The reliability of file times as evidence that content is unchanged (docs/state-file.md,
/// "Rules").
public enum VolumeTimes: Sendable, Hashable {
  /// The clock of this machine sets the times, and a change of content updates them, possibly late.
  case exact
  /// The clock of another machine may set the times: network file systems and FUSE.
  case remote
  /// Content may change while all times stay the same: memory file systems never write back, so a
  /// store through a mapping updates no time; images are built with the times and inodes of others.
  case loose
}

extension Descriptor {
  /// Returns the reliability of file times on this volume.
  public func volumeTimes() throws(SystemError) -> VolumeTimes { try volumeTimes(overlaid: 0) }

  /// Returns the reliability of file times on this volume, which is a layer of `depth` nested
  /// overlays.
  func volumeTimes(overlaid depth: Int) throws(SystemError) -> VolumeTimes {
    switch try SystemError.check(.space, name, running: { cl_volume_times(raw) }) {
    case Int(CL_TIMES_EXACT): .exact
    case Int(CL_TIMES_REMOTE): .remote
    case Int(CL_TIMES_LAYERED): try VolumeTimes.Layers.times(of: self, depth: depth)
    default: .loose
    }
  }

  /// Whether no process has the file open or mapped for writing: every later write then updates its
  /// modification time (docs/state-file.md, "Rules"). False if that is unknown, as for another
  /// user's file or on a network file system.
  public var hasNoWriter: Bool { cl_has_no_writer(raw) == 1 }
}

extension Directory {
  /// Returns the reliability of file times on the directory's volume.
  public func volumeTimes() throws(SystemError) -> VolumeTimes { try descriptor.volumeTimes() }
}

extension VolumeTimes {
  /// The layers of an overlay file system, from /proc/self/mountinfo
  /// (Documentation/filesystems/overlayfs.rst, proc_pid_mountinfo(5)).
  enum Layers {
    /// The maximum nesting of overlays that is examined; the kernel allows two levels.
    private static let deepest = 3

    /// Returns the reliability of file times on an overlay, which is that of its least reliable
    /// layer. A layer that cannot be opened, for example one outside the container, counts as a
    /// local disk.
    static func times(
      of overlay: borrowing Descriptor, depth: Int
    ) throws(SystemError) -> VolumeTimes {
      let device = try overlay.status().identity.device
      guard depth < deepest,
        let table = try Descriptor.open(path: "/proc/self/mountinfo").readAll(limit: 4 << 20)
      else { return .exact }
      var worst = VolumeTimes.exact
      for layer in directories(of: device, table) {
        guard let opened = try? Directory.open(path: layer),
          let times = try? opened.descriptor.volumeTimes(overlaid: depth + 1)
        else { continue }
        if times == .loose { return .loose }
        if times == .remote { worst = .remote }
      }
      return worst
    }

    /// Returns the absolute paths of the layers of the mount with the given device number.
    static func directories(of device: UInt64, _ table: [UInt8]) -> [ByteString] {
      for line in table.split(separator: UInt8(ascii: "\n")) {
        let fields = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard fields.count > 6, number(fields[2]) == device,
          let dash = fields[6...].firstIndex(where: { $0.elementsEqual("-".utf8) }),
          fields.indices.contains(dash + 3), fields[dash + 1].elementsEqual("overlay".utf8)
        else { continue }
        return layers(unescaped(fields[dash + 3])).filter(\.isAbsolute)
      }
      return []
    }

    /// Converts "254:1" to the device number of statx(2) (makedev(3)).
    private static func number(_ field: ArraySlice<UInt8>) -> UInt64? {
      let parts = field.split(separator: UInt8(ascii: ":")).map {
        UInt64(String(decoding: $0, as: UTF8.self))
      }
      guard parts.count == 2, let major = parts[0], let minor = parts[1] else { return nil }
      return (major & 0xfff) << 8 | (major & ~0xfff) << 32 | minor & 0xff | (minor & ~0xff) << 12
    }

    /// Decodes spaces, tabs, newlines and backslashes, which are written as three octal digits.
    static func unescaped(_ field: ArraySlice<UInt8>) -> [UInt8] {
      var bytes: [UInt8] = []
      var rest = field
      while let byte = rest.popFirst() {
        let digits = String(decoding: rest.prefix(3), as: UTF8.self)
        if byte == UInt8(ascii: "\\"), digits.utf8.count == 3, let value = UInt8(digits, radix: 8) {
          bytes.append(value)
          rest = rest.dropFirst(3)
        } else {
          bytes.append(byte)
        }
      }
      return bytes
    }

    /// Returns the values of the options that name layers. A comma or colon in a name is escaped
    /// with a backslash.
    private static func layers(_ options: [UInt8]) -> [ByteString] {
      split(options, at: UInt8(ascii: ","), keepsEscapes: true).flatMap { option -> [ByteString] in
        for name in ["upperdir=", "lowerdir=", "lowerdir+=", "datadir+="]
        where option.starts(with: name.utf8) {
          let value = Array(option.dropFirst(name.utf8.count))
          return split(value, at: UInt8(ascii: ":"), keepsEscapes: false).map { ByteString($0) }
        }
        return []
      }
    }

    private static func split(
      _ bytes: [UInt8], at separator: UInt8, keepsEscapes: Bool
    ) -> [[UInt8]] {
      var parts: [[UInt8]] = [[]]
      var rest = bytes[...]
      while let byte = rest.popFirst() {
        if byte == separator {
          parts.append([])
        } else if byte == UInt8(ascii: "\\"), let next = rest.popFirst() {
          parts[parts.count - 1] += keepsEscapes ? [byte, next] : [next]
        } else {
          parts[parts.count - 1].append(byte)
        }
      }
      return parts.filter { !$0.isEmpty }
    }
  }
}
