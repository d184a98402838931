internal import Codecs
internal import Restore
internal import SystemIO

extension UnkeptMetadata {
  /// The warning: once per file system, because it may concern every restored entry.
  fileprivate var text: String {
    let kept =
      times == 0 ? "modes" : modes == 0 ? "all modification times" : "modes and modification times"
    let parts = [(modes, "mode"), (times, "time")].filter { $0.0 > 0 }.map { count, what in
      "\(Sizes.count(count, "entry")) with another \(what)"
    }
    return "the file system at '\(directory)' does not keep \(kept) as they are set: "
      + parts.joined(separator: ", ")
  }
}

extension [UnkeptMetadata] {
  /// The members of a report: the numbers of entries on all file systems.
  var json: [JSON.Member] {
    let counts = reduce(into: (modes: 0, times: 0)) { sum, one in
      sum = (sum.modes + one.modes, sum.times + one.times)
    }
    return [
      JSON.Member("modes_not_kept", .integer(Int64(counts.modes))),
      JSON.Member("times_not_kept", .integer(Int64(counts.times))),
    ]
  }
}

extension Console {
  /// Warns about metadata that file systems did not keep although they reported no error.
  func warn(of unkept: [UnkeptMetadata]) {
    for one in unkept { warning(one.text) }
  }
}
