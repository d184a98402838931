internal import ArchiveStore
internal import Codecs
internal import SystemIO

extension ProgressCounters.State {
  /// The state as a line of `--json --verbose`.
  var json: JSON {
    var members: [JSON.Member] = [
      JSON.Member("event", "progress"),
      JSON.Member("files_done", .integer(Int64(filesDone))),
      JSON.Member("files_to_do", .integer(Int64(filesToDo))),
      JSON.Member("bytes_done", .integer(Int64(clamping: bytesDone))),
      JSON.Member("bytes_to_do", .integer(Int64(clamping: bytesToDo))),
      JSON.Member("problems", .integer(Int64(problems))),
    ]
    if !active.isEmpty { members += JSON.path(active, named: "in_hand") }
    return .object(members)
  }
}
