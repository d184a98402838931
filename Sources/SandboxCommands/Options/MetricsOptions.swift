internal import ArchiveStore
internal import ArgumentParser
internal import SystemIO

/// The metrics of a run in text exposition format 0.0.4, for Prometheus' textfile collector.
/// docs/metrics.md lists them.
struct MetricsOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Write metrics of the run to this file, for Prometheus' textfile collector.",
      valueName: "file"),
    completion: .file(extensions: ["prom"]))
  var metrics: ByteString?

  /// Adds the metrics of a result to those that each operation has.
  typealias Adding = (inout MetricsText) -> Void

  /// Runs an operation and writes its metrics, even if it fails; without a file only runs it.
  ///
  /// - Parameter body: the operation. Returns its exit status and the metrics of its result.
  func record(
    of operation: String, _ console: Console,
    _ body: () throws -> (status: ExitStatus, add: Adding)
  ) throws -> ExitStatus {
    guard let metrics else { return try body().status }
    let file = MetricsFile(file: metrics, prefix: "sandboxctl_\(operation)_")
    do {
      let (status, add) = try body()
      file.write(status, console, adding: add)
      return status
    } catch {
      file.write(Failure(error).status, console, adding: { _ in })
      throw error
    }
  }
}

/// The file with the metrics of an operation's last run.
private struct MetricsFile {
  let file: ByteString
  /// The beginning of all names.
  let prefix: String
  private let start = Host.monotonicSeconds()

  init(file: ByteString, prefix: String) { (self.file, self.prefix) = (file, prefix) }

  private var lastSuccess: String { prefix + "last_success_timestamp_seconds" }

  /// Writes the file atomically. An error is only a warning, since it does not affect the
  /// operation.
  func write(_ status: ExitStatus, _ console: Console, adding add: MetricsOptions.Adding) {
    guard let name = file.lastComponent else { return }
    do {
      let directory = try Directory.open(path: file.dirname)
      var text = text(status, now: Host.now(), old: try old(name, in: directory))
      add(&text)
      try AtomicFile.write(Array(text.text.utf8), as: name, in: directory, permissions: 0o644)
    } catch {
      console.warning("cannot write the metrics: \(error)")
    }
  }

  /// Returns the text of the existing file, empty if there is none.
  ///
  /// - Throws: `OperationError` for a file that does not contain these metrics, which must not be
  ///   overwritten.
  private func old(_ name: ByteString, in directory: borrowing Directory) throws -> String {
    guard let status = try directory.statusIfPresent(name) else { return "" }
    let bytes = status.kind == .file ? try directory.file(name).readAll(limit: 4 << 20) : nil
    let text = bytes.map { String(decoding: $0, as: UTF8.self) }
    guard let text, text.isEmpty || text.hasPrefix("# HELP \(prefix)") else {
      throw OperationError(
        .failed, code: .notOurFile,
        "'\(directory.path.appending(name))' is not a file of these metrics")
    }
    return text
  }

  /// Returns the metrics that each operation has.
  private func text(_ status: ExitStatus, now: Timestamp, old: String) -> MetricsText {
    var text = MetricsText(prefix: prefix)
    text.add(
      "last_run_timestamp_seconds", help: "Unix time of the end of the last run.",
      value: Self.seconds(now))
    let isSuccess = status == .done || status == .nothingToDo
    // Files of versions that did not name the host have no labels.
    let earlier = old.split(separator: "\n").last {
      $0.hasPrefix(lastSuccess + " ") || $0.hasPrefix(lastSuccess + "{")
    }
    .flatMap { $0.split(separator: " ").last.flatMap { Double($0) } }
    .flatMap { $0.isFinite && $0 >= 0 ? "\($0)" : nil }
    if let success = isSuccess ? Self.seconds(now) : earlier {
      text.add(
        "last_success_timestamp_seconds",
        help: "Unix time of the end of the last run that was complete and found no damage.",
        value: success)
    }
    text.add("last_exit_code", help: "Exit status of the last run.", value: "\(status.rawValue)")
    text.add(
      "last_duration_seconds", help: "Duration of the last run in seconds.",
      value: "\(Host.monotonicSeconds() - start)")
    return text
  }

  private static func seconds(_ time: Timestamp) -> String {
    let fraction = String(time.nanoseconds / 1_000_000)
    return "\(time.seconds)." + String(repeating: "0", count: 3 - fraction.count) + fraction
  }
}

/// Metrics in the text exposition format, each with its help, type and samples. Each sample has a
/// label `host`, so that files of many hosts can be collected in one place.
struct MetricsText {
  private let prefix: String
  private let host = Host.name
  private(set) var text = ""

  init(prefix: String) { self.prefix = prefix }

  /// A value with its labels besides `host`.
  typealias Sample = (labels: [(String, String)], value: String)

  /// Adds a gauge with one sample.
  mutating func add(_ name: String, help: String, value: String) {
    add(name, help: help, samples: [([], value)])
  }

  /// Adds a gauge with one sample that is a count.
  mutating func add(_ name: String, help: String, value: some BinaryInteger) {
    add(name, help: help, value: "\(value)")
  }

  /// Adds a gauge of this host, unless there are no samples.
  mutating func add(_ name: String, help: String, samples: [Sample]) {
    add(name, help: help, samplesOfHosts: samples.map { ([("host", host)] + $0.labels, $0.value) })
  }

  /// Adds a gauge whose samples have all of their labels, unless there are none.
  private mutating func add(_ name: String, help: String, samplesOfHosts samples: [Sample]) {
    if samples.isEmpty { return }
    text += "# HELP \(prefix)\(name) \(help)\n# TYPE \(prefix)\(name) gauge\n"
    for sample in samples {
      let labels = sample.labels.map { "\($0.0)=\"\(Self.escaped($0.1))\"" }
      text += "\(prefix)\(name){\(labels.joined(separator: ","))} \(sample.value)\n"
    }
  }

  private static func escaped(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "") { result, scalar in
      switch scalar {
      case "\\": result += "\\\\"
      case "\"": result += "\\\""
      case "\n": result += "\\n"
      default: result.unicodeScalars.append(scalar)
      }
    }
  }
}

extension MetricsText {
  /// The maximum number of hosts with separate metrics: the last ones to make a snapshot.
  private static let maximumHosts = 2000
  /// The maximum length of a host's name in characters, that of the domain name system.
  private static let maximumName = 255

  /// Adds the snapshots of each host of a repository, labelled with that host.
  mutating func add(_ hosts: [HostSnapshots]) {
    add("hosts", help: "Hosts with snapshots in the repository.", value: hosts.count)
    let latest = hosts.sorted { ($1.newest, $0.host) < ($0.newest, $1.host) }
      .prefix(Self.maximumHosts).sorted { $0.host < $1.host }
    // Two names that are equal after truncation would be the same sample.
    let shown = latest.filter { $0.host.count <= Self.maximumName }
    func samples(_ value: (HostSnapshots) -> String) -> [Sample] {
      shown.map { ([("host", $0.host)], value($0)) }
    }
    add(
      "host_snapshots", help: "Snapshots of the host.", samplesOfHosts: samples { "\($0.count)" })
    add(
      "host_newest_snapshot_timestamp_seconds",
      help: "Unix time of the host's newest snapshot, by its own clock.",
      samplesOfHosts: samples { "\($0.newest.seconds)" })
  }
}
