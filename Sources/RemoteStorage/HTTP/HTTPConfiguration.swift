package import SystemIO

/// The settings of connections.
package struct HTTPConfiguration: Sendable {
  /// The proxy: nil for that of the usual variables (`https_proxy`, `http_proxy`, `no_proxy`,
  /// `all_proxy`), empty for none.
  package var proxy: String?
  /// A file of certificates in PEM form that are trusted instead of the system's.
  package var authorities: ByteString?
  /// The timeout of connecting, in seconds.
  package var connectTimeout = 20.0
  /// The time without a byte in either direction after which a request fails, in seconds.
  package var idleTimeout = 60.0
  /// The same time for a request with a body. The system accepts the last bytes long before a slow
  /// link has carried them, and then no byte moves until the answer arrives, which a store may need
  /// time to prepare. rclone and restic wait for the same time.
  package var bodyIdleTimeout = 300.0
  /// The minimum rate of a request in bytes per second, over `rateWindow` seconds: far below that
  /// of any working link, even if all connections share it.
  package var minimumRate = 16.0
  package var rateWindow = 300.0
  /// Whether the operation was asked to stop. A request in which no byte moves is then ended: soon
  /// if it began before the stop was requested; one that begins later is part of the cleanup and
  /// has more time.
  package var isStopping: @Sendable () -> Bool = { false }
  /// Called after each portion of bytes, on the thread of the request. It may wait, to limit the
  /// rate.
  package var onTransfer: (@Sendable (HTTPDirection, Int) -> Void)?
  /// The largest portion of a body in bytes that is sent before `onTransfer` is called; nil for
  /// any.
  package var uploadPortion: Int?
  /// Receives each sign of life of the host.
  package var outages: OutageWatch?
  /// Called before each request.
  package var onRequest: (@Sendable () -> Void)?

  /// Creates the default settings.
  package init() {}
}

/// The direction of bytes.
package enum HTTPDirection: Sendable, Hashable {
  case upload
  case download
}
