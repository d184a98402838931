extension Host {
  /// Returns the absolute paths on which file systems are mounted; empty if they are unknown.
  ///
  /// - Parameter table: the kernel's list (proc_pid_mountinfo(5)).
  public static func mountPoints(table: ByteString = "/proc/self/mountinfo") -> Set<ByteString> {
    guard let file = try? Descriptor.open(path: table),
      let bytes = try? file.readAll(limit: 4 << 20)
    else { return [] }
    var points: Set<ByteString> = []
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      let fields = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
      if fields.count > 4 { points.insert(ByteString(VolumeTimes.Layers.unescaped(fields[4]))) }
    }
    return points
  }
}
