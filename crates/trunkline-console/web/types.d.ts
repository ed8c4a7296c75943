// The answers of the admin API that the page reads.

export interface Call {
    id: string;
    at: string;
    method: string;
    name: string | null;
    server: string | null;
    instance: string | number | null;
    principal: string | null;
    client: { name: string; version?: string } | null;
    revision: string | null;
    serverRevision: string | null;
    state: 'running' | 'done';
    outcome: string | null;
    reason: string | null;
    ms: number | null;
    stages: Stage[];
    bytesIn: number;
    bytesOut: number;
    rounds: number;
    questions: number;
    replica: string | null;
}

/** A stretch of a call, in milliseconds since it began. */
export interface Stage {
    stage: string;
    from: number;
    to: number | null;
}

export interface Recorded {
    t: number;
    side: 'client' | 'server';
    dir: 'in' | 'out';
    size: number;
    message: unknown;
    note?: string;
}

export interface Traffic {
    calls: Call[];
    dropped: number;
    oldest: string | null;
    recording: Record<string, unknown> | null;
}

export interface Status {
    version: string;
    uptimeMs: number;
    config: string | null;
    listen: string | null;
    clients: number;
    parked: number;
    servers: Server[];
}

export interface Server {
    name: string;
    /** `idle`, `starting`, `ready`, `backoff`, `suspended`, `draining`, or `out` if the catalog left it out. */
    state: string;
    instances: Instance[];
    waiters: number;
    revision?: string | null;
    tools?: number | null;
    prompts?: number | null;
    resources?: number | null;
    attempt?: number;
    nextRetryMs?: number;
    lastError?: string | null;
    starts?: Record<string, number>;
    stops?: Record<string, number>;
    heldBack?: { kind: string; name: string; refused?: boolean }[];
    warnings?: unknown[] | null;
    tags?: string[];
    traffic?: Rates | null;
}

export interface Instance {
    id: number;
    state: string;
    pid: number | null;
    inFlight: number;
    bound: boolean;
    cause: string;
    ageMs: number;
    idleMs?: number;
}

export interface LogLine {
    at: string;
    server: string;
    instance?: number;
    source: string;
    line: string;
}

export interface Held {
    server: string;
    kind: string;
    name: string;
    why: string;
    digest: string;
    was: unknown;
    is: unknown;
    refused: boolean;
}

export interface Rates extends Percentiles {
    count: number;
    failed: number;
    /** Oldest first. */
    steps: (Percentiles & { rate: number; failedRate: number })[];
}

/** In milliseconds; null if there was no call. */
export interface Percentiles {
    p50: number | null;
    p95: number | null;
    p99: number | null;
}
