export { type Ask, type TestAnswer, type TestBroker, type TestBrokerOptions, testBroker } from "./test-broker.js";
