internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SampleDevice
internal import SystemIO

/// `sandboxctl sample DIR`: creates a sample device.
struct SampleCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "sample",
      abstract: "Create a small sample device",
      discussion: """
        Creates a device with the layout of an iOS simulator, to try the program on: four apps, an \
        extension, a group that two apps share, databases, property lists, marks, caches and more. \
        It is the same on every machine. --day applies a day of use to an existing sample instead.

        \(Examples.text(["sandboxctl sample device", "sandboxctl sample device --day 1"]))
        """)
  }

  @Argument(
    help: ArgumentHelp(
      "The directory of the sample: new or empty, unless --day is given.", valueName: "dir"))
  var directory: ByteString

  @Option(
    help: ArgumentHelp(
      "Apply this day of use to an existing sample, 1 to \(SampleDevice.lastDay).", valueName: "n"))
  var day: Int?

  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let report =
      if let day {
        try SampleDevice.change(at: directory, day: day)
      } else {
        try SampleDevice.make(at: directory)
      }
    if output.json {
      try console.result(
        .object(
          JSON.path(directory) + [
            JSON.Member("entries", .integer(Int64(report.entries))),
            JSON.Member("removed", .integer(Int64(report.removed))),
            JSON.Member("bytes", .integer(Int64(report.bytes))),
          ]))
    } else if !output.quiet {
      let verb = day.map { "day \($0) of use: \(Sizes.count(report.entries)) entries changed" }
      let made = "sample device in \(directory): \(Sizes.count(report.entries)) entries"
      try console.result("\(verb ?? made), \(Sizes.text(report.bytes))")
    }
    if !output.quiet { for note in report.notes { console.note(note) } }
    return .done
  }
}
